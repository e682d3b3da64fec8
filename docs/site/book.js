// Adds what mdbook's pages lack for users of a keyboard or a screen reader.

// The button that shows the table of contents is a <label>, which the keyboard cannot focus.
const toggle = document.getElementById("mdbook-sidebar-toggle");
toggle.setAttribute("role", "button");
toggle.tabIndex = 0;
toggle.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" && event.key !== " ") return;
  event.preventDefault();
  toggle.click();
});

// Lets the focus reach every box that is wider than the page, so that the arrow keys can scroll the box.
const boxes = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
  }
});
for (const box of document.querySelectorAll("main pre > code, main .table-wrapper")) boxes.observe(box);

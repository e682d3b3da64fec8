// What mdbook's pages lack for those who use them by keys or by ear.

// The button of the contents is a label, which no key reaches.
const toggle = document.getElementById("mdbook-sidebar-toggle");
toggle.setAttribute("role", "button");
toggle.tabIndex = 0;
toggle.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" && event.key !== " ") return;
  event.preventDefault();
  toggle.click();
});

// What is wider than the page is scrolled by keys once it has the focus.
const boxes = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
  }
});
for (const box of document.querySelectorAll("main pre > code, main .table-wrapper")) boxes.observe(box);

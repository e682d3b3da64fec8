// Exports results of the page as files.

/** Makes the browser save a text or a blob as a file with this name. */
export function save(name, type, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  // Release the URL only later, because the browser has not read it yet when this function returns.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Returns the time series of all lanes as CSV (RFC 4180). The names of the columns contain the units. */
export function csv({ lanes }) {
  const names = Object.keys(lanes[0].columns);
  const lines = [["controller", ...names].join(",")];
  for (const { controller, columns } of lanes) {
    columns.at_s.forEach((_, row) => {
      lines.push([controller, ...names.map((name) => columns[name][row] ?? "")].join(","));
    });
  }
  return `${lines.join("\r\n")}\r\n`;
}

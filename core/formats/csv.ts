// Comma-separated values (RFC 4180) for spreadsheets.

/** By it spreadsheets recognise UTF-8. */
export const BYTE_ORDER_MARK = '\uFEFF';

/**
 * One line. Spreadsheets run a cell that begins like a formula, and names are chosen by strangers: an apostrophe before
 * it makes it a text (OWASP, "CSV Injection").
 */
export function csvLine(cells: readonly (string | null)[]): string {
  return `${cells.map((cell) => quoted(cell ?? '')).join(',')}\r\n`;
}

// Also behind white space, which some of them skip, and in the wide forms of these characters.
const FORMULA = /^[\s\0]*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]|^[\t\r\n]/;

function quoted(text: string): string {
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /^[\w.:-]*$/.test(safe) ? safe : `"${safe.replaceAll('"', '""')}"`;
}

// Records as text: a table for the form of a registrar, and the lines of a zone file.
import type { DnsRecord } from './plan';

const TTL_SECONDS = 300;

/** Names as most forms want them: relative to the domain. */
export function recordTable(records: readonly DnsRecord[], domain: string): string {
  const rows = records.map(({ name, type, value, purpose }) => [relativeTo(name, domain), type, value, purpose]);
  const header = ['Name', 'Type', 'Value', 'For'];
  const widths = header.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]!.length)));
  const line = (cells: string[]): string =>
    `  ${cells.map((cell, column) => cell.padEnd(widths[column]!)).join('  ')}`.trimEnd();
  return [header, ...rows].map((row) => line(row)).join('\n');
}

export function zoneLines(records: readonly DnsRecord[]): string {
  return records
    .map(({ name, type, value }) => `  ${name}. ${TTL_SECONDS} IN ${type} ${value}${type === 'NS' ? '.' : ''}`)
    .join('\n');
}

/** The whole name, with a dot, where another domain holds it. */
function relativeTo(name: string, domain: string): string {
  if (name === domain) return '@';
  return name.endsWith(`.${domain}`) ? name.slice(0, -domain.length - 1) : `${name}.`;
}

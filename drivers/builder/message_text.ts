// What messages quote of a source, whose texts and names are the tenant's.

const TEXT_MAX = 60;
const NAMES_MAX = 8;

/** The beginning of a text, in printable ASCII. */
export function printable(text: string): string {
  return text.slice(0, TEXT_MAX).replace(/[^ -~]/g, '?');
}

/** `cmd/api, cmd/worker and 3 more`. */
export function listNames(names: readonly string[]): string {
  const rest = names.length - NAMES_MAX;
  return `${names.slice(0, NAMES_MAX).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}

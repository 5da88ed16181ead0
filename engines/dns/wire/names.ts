// Domain names as labels: their wire format, and their map keys.

/** Labels as Latin-1, in lower case, without the root. In keys, a dot inside a label is escaped as `\.`. */
export type Labels = string[];

const NAME_BYTES_MAX = 255;
export const LABEL_BYTES_MAX = 63;

interface ReadName {
  labels: Labels;
  /** Position after the name. */
  end: number;
}

/**
 * Reads the name of a question, which is never compressed (RFC 9619: one question per message).
 * @returns null for invalid bytes
 */
export function readQuestionName(message: Buffer, start: number): ReadName | null {
  const labels: Labels = [];
  let position = start;
  for (;;) {
    const length = message[position];
    if (length === undefined || length > LABEL_BYTES_MAX) return null;
    if (length === 0) break;
    if (position + 1 + length > message.length || position - start + length + 2 > NAME_BYTES_MAX) return null;
    labels.push(lowerCase(message.toString('latin1', position + 1, position + 1 + length)));
    position += length + 1;
  }
  return { labels, end: position + 1 };
}

/** Converts ASCII letters only (RFC 4343 §3). */
function lowerCase(label: string): string {
  return /[A-Z]/.test(label) ? label.replace(/[A-Z]+/g, (letters) => letters.toLowerCase()) : label;
}

const SPECIAL = /[.\\]/;

/** Map key of a name; unique per name. */
export function keyOfLabels(labels: Labels): string {
  let key = '';
  for (let index = 0; index < labels.length; index += 1) {
    const label = labels[index] as string;
    if (index) key += '.';
    key += SPECIAL.test(label) ? label.replace(/[.\\]/g, '\\$&') : label;
  }
  return key;
}

/** Labels of a host name of the API, whose labels contain neither dots nor backslashes. */
export function labelsOfName(name: string): Labels {
  return name === '' ? [] : name.toLowerCase().split('.');
}

/** The name in wire format, without compression. */
export function encodeName(labels: Labels): Buffer {
  const parts = labels.flatMap((label) => [Buffer.from([label.length]), Buffer.from(label, 'latin1')]);
  return Buffer.concat([...parts, Buffer.from([0])]);
}

/** Canonical order (RFC 4034 §6.1): by label from the right, byte by byte; Latin-1 preserves the byte order. */
export function compareNames(a: Labels, b: Labels): number {
  const common = Math.min(a.length, b.length);
  for (let i = 1; i <= common; i += 1) {
    const left = a[a.length - i] as string;
    const right = b[b.length - i] as string;
    if (left !== right) return left < right ? -1 : 1;
  }
  return a.length - b.length;
}

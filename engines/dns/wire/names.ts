// Names of the DNS as labels: what stands in a message, and the key under which a zone finds it.

/** Labels as bytes read as Latin-1, in lower case, without the root. A dot inside a label is kept as `\.` in keys. */
export type Labels = string[];

const NAME_BYTES_MAX = 255;
export const LABEL_BYTES_MAX = 63;

interface ReadName {
  labels: Labels;
  /** Position behind the name. */
  end: number;
}

/**
 * Reads the name of a question, which is never compressed (RFC 9619 keeps one question a message).
 * @returns null where the bytes are no name
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

/** ASCII letters only (RFC 4343 §3): other bytes are themselves. */
function lowerCase(label: string): string {
  return /[A-Z]/.test(label) ? label.replace(/[A-Z]+/g, (letters) => letters.toLowerCase()) : label;
}

const SPECIAL = /[.\\]/;

/** Key of a name in a map; two different names never share one. */
export function keyOfLabels(labels: Labels): string {
  let key = '';
  for (let index = 0; index < labels.length; index += 1) {
    const label = labels[index] as string;
    if (index) key += '.';
    key += SPECIAL.test(label) ? label.replace(/[.\\]/g, '\\$&') : label;
  }
  return key;
}

/** Labels of a host name of the API, which has neither dots nor backslashes inside its labels. */
export function labelsOfName(name: string): Labels {
  return name === '' ? [] : name.toLowerCase().split('.');
}

/** The name as it stands in a message, without compression. */
export function encodeName(labels: Labels): Buffer {
  const parts = labels.flatMap((label) => [Buffer.from([label.length]), Buffer.from(label, 'latin1')]);
  return Buffer.concat([...parts, Buffer.from([0])]);
}

/** Canonical order (RFC 4034 §6.1): by label from the right, as bytes, which Latin-1 keeps in order. */
export function compareNames(a: Labels, b: Labels): number {
  const common = Math.min(a.length, b.length);
  for (let i = 1; i <= common; i += 1) {
    const left = a[a.length - i] as string;
    const right = b[b.length - i] as string;
    if (left !== right) return left < right ? -1 : 1;
  }
  return a.length - b.length;
}

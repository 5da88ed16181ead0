/** Formats a driver's reason as a sentence: `the volume is not ready` becomes `The volume is not ready.` */
export function toSentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;
}

/** Bytes for a person: `1.5 GiB`. */
export function gibibytesText(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}

/** `the volume is not ready` becomes `The volume is not ready.`: reasons of drivers as people read them. */
export function toSentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;
}

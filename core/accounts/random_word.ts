// Random words that cannot be guessed in a few attempts, for readable names: suffixes of host names, labels, selectors.
import { randomInt } from 'node:crypto';

/** A word of `length` characters, drawn independently from the letters. */
export function randomWord(letters: string, length: number): string {
  return Array.from({ length }, () => letters[randomInt(letters.length)]).join('');
}

// Words that nobody can guess in a few tries, for names that people read: suffixes of host names, labels, selectors.
import { randomInt } from 'node:crypto';

/** As many characters, each drawn alone from the letters. */
export function randomWord(letters: string, length: number): string {
  return Array.from({ length }, () => letters[randomInt(letters.length)]).join('');
}

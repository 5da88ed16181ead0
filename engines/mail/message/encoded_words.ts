// Encoded words (RFC 2047) for non-ASCII text in headers.
import { isUtf8 } from 'node:buffer';

/** RFC 2047 §2: an encoded word has at most 75 characters. */
const WORD_MAX = 75;
/** RFC 1428 §3: charset label for bytes of an unknown charset. */
const UNKNOWN = 'unknown-8bit';
const ENCODED = /^=\?[^?\s]+\?[bq]\?[^?\s]*\?=$/i;

/** @param text bytes (latin1) @returns encoded words separated by spaces, which readers ignore */
export function encodeWords(text: string): string {
  const bytes = Buffer.from(text, 'latin1');
  const isText = isUtf8(bytes);
  const charset = isText ? 'utf-8' : UNKNOWN;
  const bytesMax = Math.floor((WORD_MAX - `=?${charset}?B??=`.length) / 4) * 3;
  const characters = isText ? [...bytes.toString()].map((each) => Buffer.from(each)) : [...bytes].map((each) => [each]);
  const words: number[][] = [];
  for (const character of characters) {
    const last = words[words.length - 1];
    if (last && last.length + character.length <= bytesMax) last.push(...character);
    else words.push([...character]);
  }
  return words.map((word) => `=?${charset}?B?${Buffer.from(word).toString('base64')}?=`).join(' ');
}

/** Encodes the words of unstructured text that need it. @param needs whether a word has to be encoded */
export function encodeText(text: string, needs: (word: string) => boolean): string {
  const words = text.split(/[ \t]+/).filter(Boolean);
  const out: string[] = [];
  for (let at = 0; at < words.length;) {
    if (!needs(words[at] as string)) {
      out.push(words[at] as string);
      at += 1;
      continue;
    }
    const begun = at;
    while (at < words.length && needs(words[at] as string)) at += 1;
    // The space between two encoded words is ignored by readers, so it is encoded in the second word.
    const isBehindWord = begun > 0 && ENCODED.test(words[begun - 1] as string);
    const isBeforeWord = at < words.length && ENCODED.test(words[at] as string);
    const run = words.slice(begun, at).join(' ');
    out.push(encodeWords(`${isBehindWord ? ' ' : ''}${run}${isBeforeWord ? ' ' : ''}`));
  }
  return out.join(' ');
}

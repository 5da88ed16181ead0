// Text beyond ASCII in a header (RFC 2047): words that every server lets through.
import { isUtf8 } from 'node:buffer';

/** RFC 2047 §2: an encoded word has 75 characters at most. */
const WORD_MAX = 75;
/** RFC 1428 §3: for bytes of which nobody has said what they mean. */
const UNKNOWN = 'unknown-8bit';
const ENCODED = /^=\?[^?\s]+\?[bq]\?[^?\s]*\?=$/i;

/** @param text bytes (latin1) @returns encoded words with a blank between them, which readers leave out */
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

/** Encodes what of unstructured text has to be, and leaves the rest. @param needs tells of a word between blanks */
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
    // The blank between two encoded words is lost, so it goes into the second one.
    const isBehindWord = begun > 0 && ENCODED.test(words[begun - 1] as string);
    const isBeforeWord = at < words.length && ENCODED.test(words[at] as string);
    const run = words.slice(begun, at).join(' ');
    out.push(encodeWords(`${isBehindWord ? ' ' : ''}${run}${isBeforeWord ? ' ' : ''}`));
  }
  return out.join(' ');
}

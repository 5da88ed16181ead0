// Sizes, durations and commands as files of others write them.

const UNITS: Readonly<Record<string, number>> = { '': 1, b: 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };

/** Bytes of `512m`, `1.5 GB`, `512Mi`, or of a number in `unit`. Null for anything else. */
export function bytesOf(text: string, unit: 'b' | 'm' | 'g' = 'b'): number | null {
  const [, number, letter] = /^(\d+(?:\.\d+)?)\s*([bkmgt]?)(?:i?b)?$/i.exec(text.trim()) ?? [];
  if (number === undefined) return null;
  return Number(number) * (UNITS[(letter || unit).toLowerCase()] as number);
}

export const megabytesOf = (text: string, unit?: 'b' | 'm' | 'g'): number | null => {
  const bytes = bytesOf(text, unit);
  return bytes === null ? null : Math.ceil(bytes / 2 ** 20);
};

export const gigabytesOf = (text: string, unit?: 'b' | 'm' | 'g'): number | null => {
  const bytes = bytesOf(text, unit);
  return bytes === null ? null : Math.max(1, Math.ceil(bytes / 2 ** 30));
};

const SECONDS: Readonly<Record<string, number>> = {
  ...{ ns: 1e-9, us: 1e-6, µs: 1e-6, ms: 1e-3, s: 1, m: 60, h: 3_600, d: 86_400 },
};

/** Seconds of `1m30s`, `500ms`, or of a number in `unit`; rounded up. Null for anything else. */
export function durationSeconds(text: string, unit: 's' | 'ms' = 's'): number | null {
  const trimmed = text.trim();
  if (/^\d+(\.\d+)?$/.test(trimmed)) return Math.ceil(Number(trimmed) * (SECONDS[unit] as number));
  if (!/^(\d+(\.\d+)?(ns|us|µs|ms|s|m|h|d))+$/.test(trimmed)) return null;
  let sum = 0;
  for (const [, number, name] of trimmed.matchAll(/(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h|d)/g))
    sum += Number(number) * (SECONDS[name as string] as number);
  return Math.ceil(sum);
}

/** A list of arguments as one line of a shell. */
export const commandOf = (words: readonly string[]): string => words.map(quoted).join(' ');

const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);

const BLANK = /\s/;
const OPERATOR = /[;&|<>]/;
const OF_SHELLS = /[$`*?~#(){}[\]!\\]/;

/** Words of a text in quotes, as Compose splits it; null with an open quote, or an operator, which no quotes hide. */
function unquotedWords(text: string): string[] | null {
  const words: string[] = [];
  let [word, quote]: [string | null, string] = [null, ''];
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at] as string;
    if (sign === '\\' && quote !== "'") word = (word ?? '') + (text[(at += 1)] ?? '');
    else if (sign === quote) quote = '';
    else if (quote) word = (word ?? '') + sign;
    else if (sign === '"' || sign === "'") [word, quote] = [word ?? '', sign];
    else if (OPERATOR.test(sign)) return null;
    else if (!BLANK.test(sign)) word = (word ?? '') + sign;
    else if (word !== null) {
      words.push(word);
      word = null;
    }
  }
  if (quote) return null;
  return word === null ? words : [...words, word];
}

/** A text of Compose, which no shell reads there, as a line of a shell that does the same. */
export function lineOfShell(text: string): string {
  const words = unquotedWords(text);
  if (words && (OF_SHELLS.test(text) || words.some((word) => word.includes('\n')))) return commandOf(words);
  return text
    .split('\n')
    .map((line) => line.trim())
    .join(' ')
    .trim();
}

/** The name of a resource: 3 to 40 lower-case letters, digits and single hyphens, a letter first. */
export function slugOf(text: string, suffix: string): string {
  const plain = text
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+|-+$/g, '')
    .slice(0, 32)
    .replace(/-+$/, '');
  if (plain === 'db') return 'database';
  return plain.length >= 3 ? plain : [plain, suffix].filter(Boolean).join('-');
}

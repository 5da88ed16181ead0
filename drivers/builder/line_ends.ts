// Scripts with the line ends of Windows: the kernel looks for an interpreter whose name ends in a carriage return, and
// what shells say about it names neither.
import { openFiles } from './source_files';

const NAMES_MAX = 60;
/** As GNU env, bash and others show it: `env: ‘bash\r’`, `/bin/sh^M: bad interpreter`, `$'\r': command not found`. */
const SHOWN = /\\r['’"`]|\^M\b|\^M:/;
const ADVICE = 'Save it with LF, and add `* text=auto eol=lf` to .gitattributes.';

/**
 * A sentence to put behind the reason of a failure; '' where no script is to blame.
 * @param directory of the files, or the root of an image
 * @param places where the command starts, within it
 * @param texts the command, and what it printed
 */
export async function lineEndHint(
  directory: string,
  places: readonly string[],
  texts: readonly string[],
): Promise<string> {
  const script = await brokenScript(directory, places, namesIn(texts));
  if (script !== null)
    return ` \`${script}\` has the line ends of Windows (CR LF), so its interpreter is not found. ${ADVICE}`;
  return texts.some((text) => SHOWN.test(text)) ? ` A script has the line ends of Windows (CR LF). ${ADVICE}` : '';
}

function namesIn(texts: readonly string[]): string[] {
  // A word begins once: without the condition, a row of dots would be read from each of them.
  const words = texts.flatMap((text) => text.match(/(?<![\w@.+/-])[\w@.+/-]*[\w+-]/g) ?? []);
  return [...new Set(words)].filter((word) => /[./]/.test(word)).slice(0, NAMES_MAX);
}

async function brokenScript(directory: string, places: readonly string[], names: string[]): Promise<string | null> {
  for (const place of new Set([...places, '.'])) {
    const files = await openFiles(directory, place).catch(() => null);
    for (const name of files === null ? [] : names) {
      const head = await files?.readHead(name.replace(/^\/app\//, '')).catch(() => null);
      if (head && /^#![^\n]{1,200}\r\n/.test(head)) return name;
    }
  }
  return null;
}

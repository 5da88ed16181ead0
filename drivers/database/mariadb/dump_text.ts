// What is changed in the text of a dump on its way, without reading statements: lines that mariadb-dump writes itself.
import { Transform, type TransformCallback } from 'node:stream';

// Their second bytes may be a backslash. The client splits a dump into statements with the character set that it was
// started with, and takes that byte for an escape: what belongs to a string then ends it, or is run as a statement.
const SWITCHED =
  /^\/\*!500(?:01|03) SET character_set_client +=( (?:big5|cp932|gbk|sjis)| @saved_cs_client) \*\/ ?;;?$/gm;
const DEFINER = /DEFINER=`([a-z][a-z0-9_]{0,30})`@`%`/g;
const definerBytes = 60;
const switchBytes = 100;

/** Lines go on whole where they may be a switch; all others as they come. */
function linesOf(change: (text: string, atStart: boolean) => string | Promise<string>): Transform {
  let waiting = '';
  let atStart = true;
  const transform = async (part: Buffer): Promise<Buffer> => {
    const text = waiting + part.toString('latin1');
    const end = text.lastIndexOf('\n') + 1;
    const keep = text.length - end < switchBytes && (end > 0 || atStart) ? text.length - end : 0;
    waiting = text.slice(text.length - keep);
    const whole = text.slice(0, text.length - keep);
    const changed = await change(whole, atStart);
    if (whole !== '') atStart = whole.endsWith('\n');
    return Buffer.from(changed, 'latin1');
  };
  return new Transform({
    transform: (part: Buffer, _encoding, done: TransformCallback) =>
      void transform(part).then(
        (changed) => done(null, changed),
        (error: Error) => done(error),
      ),
    flush: (done) => done(null, Buffer.from(waiting, 'latin1')),
  });
}

/** Has the client read each part of the dump with the character set that the server reads it with. */
function withCharacterSets(text: string, atStart: boolean): string {
  return text.replace(SWITCHED, (line: string, to: string, offset: number) => {
    if (offset === 0 && !atStart) return line;
    return to === ' @saved_cs_client' ? `\\C utf8mb4\n${line}` : `${line}\n\\C${to}`;
  });
}

/** Writes `header` after the first line, which programs look for, and the client's character sets. */
export function dumpText(header: string): Transform {
  let begun = false;
  return linesOf((text, atStart) => {
    const changed = withCharacterSets(text, atStart);
    if (begun || text === '') return changed;
    begun = true;
    const end = changed.indexOf('\n') + 1;
    const rest = changed
      .slice(end)
      // Files of tables elsewhere are not there at the load, or those of the replaced data still are.
      .replace(`SQL_MODE='NO_AUTO_VALUE_ON_ZERO'`, `SQL_MODE='NO_AUTO_VALUE_ON_ZERO,NO_DIR_IN_CREATE'`);
    return `${changed.slice(0, end)}${Buffer.from(header).toString('latin1')}${rest}`;
  });
}

/** Reports each definer before the client sees it; what looks like one in a row is reported too. */
export function loadText(onDefiner: (username: string) => Promise<void>): Transform {
  const known = new Set<string>();
  let before = '';
  return linesOf(async (text, atStart) => {
    for (const [, username] of (before + text).matchAll(DEFINER)) {
      if (known.has(username!) || known.size >= 200) continue;
      known.add(username!);
      await onDefiner(username!);
    }
    before = text.slice(-definerBytes);
    return withCharacterSets(text, atStart);
  });
}

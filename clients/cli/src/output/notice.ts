// Words for people: on standard error, so that standard output is data alone.
import { completeHint } from './hint';

let isOverwritten = false;
let last = Date.now();

export function notice(text: string): void {
  // What stands in the line of the progress is drawn again below.
  process.stderr.write(`${isOverwritten ? '\r\x1b[K' : ''}${completeHint(text)}\n`);
  last = Date.now();
}

/** While a line that moves is shown, a notice takes its place. */
export function setOverwritten(given: boolean): void {
  isOverwritten = given;
  last = Date.now();
}

/** Milliseconds since something was said. */
export const silentSince = (): number => Date.now() - last;

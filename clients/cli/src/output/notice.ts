// Words for people: on standard error, so that standard output is data alone.

let isQuiet = false;
export function silenceNotices(): void {
  isQuiet = true;
}

export function notice(text: string): void {
  if (!isQuiet) process.stderr.write(`${text}\n`);
}

// Words for people: on standard error, so that standard output is data alone.

export function notice(text: string): void {
  process.stderr.write(`${text}\n`);
}

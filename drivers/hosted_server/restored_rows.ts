// Compares what a restored server has with what its backup held.
import { DriverError } from '../../core/driver';

/**
 * What may go between the moment of a backup and that of the count, where programs wrote meanwhile. Any number may
 * come.
 */
const GONE = { share: 0.1, rows: 500 };

export interface RowCounts {
  /** By the name of the table. */
  expected: ReadonlyMap<string, number>;
  found: ReadonlyMap<string, number>;
  /** Nothing was written between the two. */
  isExact: boolean;
  /** What is counted. */
  unit: 'rows' | 'keys';
}

/** @throws DriverError invalid, with a sentence on the first table that differs */
export function requireRows({ expected, found, isExact, unit }: RowCounts): void {
  for (const [table, wanted] of expected) {
    const rows = found.get(table);
    const gone = wanted - (rows ?? 0);
    const isLost = isExact ? gone !== 0 || rows === undefined : gone > Math.max(GONE.rows, wanted * GONE.share);
    if (!isLost) continue;
    const has = rows === undefined ? 'is missing from the restored data' : `has ${rows} ${unit} in the restored data`;
    const what = unit === 'rows' ? `The table ${table}` : 'The database';
    throw new DriverError('invalid', `${what} ${has}, and had ${wanted} at the time of the backup.`);
  }
}

/** How many there are. */
export function totalRows(found: ReadonlyMap<string, number>): number {
  return [...found.values()].reduce((sum, rows) => sum + rows, 0);
}

/** The outcome of an assertion: `first` is the first column of its rows. @throws DriverError invalid */
export function requireTrue(first: readonly unknown[]): void {
  const shown = first.length === 1 ? toText(first[0]) : `${first.length} rows`;
  if (first.length === 1 && [true, 1, '1', 't', 1n].includes(first[0] as boolean)) return;
  throw new DriverError('invalid', `The backup was restored, but \`proof_assertion\` returned ${shown}, not true.`);
}

/** What an assertion that cannot be run says. */
export function assertionFailure(reason: string): DriverError {
  return new DriverError('invalid', `The backup was restored, but \`proof_assertion\` could not be run: ${reason}`);
}

function toText(value: unknown): string {
  return value === null || value === undefined ? 'NULL' : JSON.stringify(value).slice(0, 100);
}

/** Lines of a stream without their ends, as bytes: of a longer line, only its first 64 KiB. */
export async function* splitLines(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let begun: Buffer[] = [];
  let bytes = 0;
  for await (const part of stream) {
    let from = 0;
    for (let end = part.indexOf(10, from); end >= 0; end = part.indexOf(10, from)) {
      const rest = part.subarray(from, end);
      yield begun.length ? Buffer.concat([...begun, rest]) : rest;
      [begun, bytes, from] = [[], 0, end + 1];
    }
    if (from === part.length || bytes >= LINE_BYTES) continue;
    begun.push(Buffer.from(part.subarray(from)));
    bytes += part.length - from;
  }
  if (bytes > 0) yield Buffer.concat(begun);
}

const LINE_BYTES = 64 << 10;

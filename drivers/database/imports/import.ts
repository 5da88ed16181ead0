// What an import is given, and what it says of its work. Engines: drivers/database/postgresql/imports, mariadb, redis.
import type { ChildProcess } from 'node:child_process';
import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { DriverError, driverContext, type DriverContext } from '../../../core/driver';

/** A server elsewhere, whose name was resolved and judged. */
export interface SourceServer {
  host: string;
  /** Its address: no other one is connected to. */
  address: string;
  port: number;
  user: string;
  password: string;
  database: string;
  /** Of the URL. */
  tls: 'disable' | 'prefer' | 'require' | 'verify-ca' | 'verify-full';
}

/** `file`: path of a dump, which only the platform can read. */
export type ImportSource = { file: string } | { server: SourceServer };

export interface ImportedTable {
  name: string;
  /** In the source. */
  rows_read: number;
  /** In the database after the import; null until then. */
  rows: number | null;
}

/** What the source has and the database has not got, with the reason as a sentence. */
export interface NotTakenOver {
  kind: string;
  name: string;
  reason: string;
}

export interface ImportReport {
  /** Of the file or of the dump of the source. */
  bytes_read: number;
  tables: ImportedTable[];
  not_taken_over: NotTakenOver[];
  /** Names and versions of extensions that the platform created. */
  extensions: { name: string; version: string }[];
  /** Identifies the transaction, to find out after a crash what became of it. */
  transaction?: string;
  /** Of one that follows its source: what is made there, and where the copied data are in its log. */
  follow?: { slot: string; start: string | null };
  /** All that the source had when it was finished is here. */
  is_complete?: boolean;
}

/** `excluded`: tables whose rows are left out. `previous`: of a call that was killed. */
export interface ImportWork {
  id: string;
  /** Fetches it, where it is not here. */
  source(): Promise<ImportSource>;
  excluded: readonly string[];
  /** The copy is followed by the changes since. */
  follows?: boolean;
  previous: ImportReport | null;
  /** Keeps the report. Rejects where another process has the import by now. */
  report(report: ImportReport): Promise<void>;
}

/** An import whose data were copied, and that applies what the source has changed since. */
export interface FollowWork {
  id: string;
  slot: string;
  start: string;
  excluded: readonly string[];
  report: ImportReport;
  /** Its address is judged each time. */
  source(): Promise<SourceServer>;
  /** null: go on. `at`: tells one request from the next. */
  finish: { read_only: boolean; at: string } | null;
}

/** `makeWritable`: the source was made read-only for a switch that does not take place. */
export interface FollowEnd {
  id: string;
  slot: string;
  source(): Promise<SourceServer>;
  makeWritable: boolean;
}

export interface FollowObserved {
  phase: 'following' | 'finishing';
  report: ImportReport;
  /** Of the log of the source that was not applied yet. */
  lag_bytes: number;
  lag_seconds: number;
  /** Why it does not go on now; null where it does. */
  reason: string | null;
  /** Why the request to finish it was refused; null where it was not. */
  finish_refusal: string | null;
  /** All rows of the source are here, and its sequences. */
  is_complete: boolean;
}

/** Of the publication and of the slot; names of slots have lower-case letters, digits and underscores. */
export function slotNameOf(importId: string): string {
  return `platform_${importId.toLowerCase()}`;
}

/** Lists are cut off there. */
const LISTED_MAX = 500;
const REPORT_EVERY_MS = 1_000;

/** Collects what an import says. */
export class Reporter {
  private readonly tables = new Map<string, ImportedTable>();
  private readonly missing = new Map<string, NotTakenOver>();
  readonly extensions: { name: string; version: string }[] = [];
  transaction: string | undefined;
  follow: ImportReport['follow'];
  private last = 0;

  constructor(
    private readonly work: ImportWork,
    private readonly bytes: () => number,
  ) {}

  table(name: string, rows: number): void {
    const known = this.tables.get(name);
    if (known) known.rows_read += rows;
    else this.tables.set(name, { name, rows_read: rows, rows: null });
  }

  get tableNames(): string[] {
    return [...this.tables.keys()];
  }

  counted(name: string, rows: number): void {
    const known = this.tables.get(name);
    if (known) known.rows = rows;
  }

  notTaken(kind: string, name: string, reason: string): void {
    const key = `${kind} ${name}`;
    if (!this.missing.has(key) && this.missing.size < LISTED_MAX) this.missing.set(key, { kind, name, reason });
  }

  /** Now and then. */
  async tick(): Promise<void> {
    if (Date.now() - this.last < REPORT_EVERY_MS) return;
    await this.save();
  }

  async save(): Promise<void> {
    this.last = Date.now();
    await this.work.report(this.result());
  }

  result(): ImportReport {
    return {
      bytes_read: this.bytes(),
      tables: [...this.tables.values()].slice(0, LISTED_MAX),
      not_taken_over: [...this.missing.values()],
      extensions: this.extensions,
      ...(this.transaction !== undefined && { transaction: this.transaction }),
      ...(this.follow && { follow: this.follow }),
    };
  }
}

/** Whether rows of a table are left out: `name` as in the dump, an exclusion with or without its schema. */
export function isExcluded(name: string, excluded: readonly string[]): boolean {
  const plain = name.replaceAll(/["`]/g, '');
  return excluded.includes(plain) || excluded.includes(plain.slice(plain.indexOf('.') + 1));
}

/**
 * What a program prints, kept until it is read: Node throws away what nobody reads once the program has ended, and a
 * small dump would be an empty one.
 */
export function keptOutput(child: ChildProcess): AsyncIterable<Buffer> {
  return child.stdout!.pipe(new PassThrough());
}

const CLEAR_MS = 60_000;

/**
 * Takes back what was imported, also where the import was canceled, and where the server is only starting again.
 * @returns the end of the reason why the import failed
 */
export async function clearAgain(ctx: DriverContext, clear: (ctx: DriverContext) => Promise<void>): Promise<string> {
  const own = { ...ctx, ...driverContext(CLEAR_MS) };
  for (;;) {
    try {
      await clear(own);
      return 'Nothing was imported.';
    } catch {
      if (own.signal.aborted) return 'What was imported until then could not be removed.';
      await sleep(500);
    }
  }
}

/** @throws DriverError transient where the import was canceled, or its time is over */
export function requireGoing(ctx: DriverContext): void {
  if (ctx.signal.aborted) throw new DriverError('transient', 'The import was ended before it was complete.');
}

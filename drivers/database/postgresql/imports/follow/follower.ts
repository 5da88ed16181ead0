// Follows a source in the background, for days: one follower per import in this process. The job observes it now and
// then; one that nobody observes any more belongs to another process by now, and ends.
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Client } from 'pg';
import { DriverError } from '../../../../../core/driver';
import { cleanFailureText } from '../../../../../core/log/failure_text';
import { toSentence } from '../../../../../core/sentence';
import type { FollowObserved, FollowWork, SourceServer } from '../../../imports/import';
import type { Cluster } from '../../cluster';
import { isUnavailable } from '../../session';
import { Applier } from './apply';
import { formatLsn, lsnOf, readChange } from './pgoutput';
import { makeReadOnly, makeWritable } from './read_only';
import { findSlot, flushedPosition, isStandby, newTables } from './source';
import { connectToSource, disableTimeouts, endQuickly, failureAtSource } from './source_session';
import { ChangeStream, type StreamMessage } from './stream';
import { openTarget } from './target';
import { addNotTakenOver, countBoth, readSequences, requireNoPrepared, setSequences } from './totals';

const RETRY = { firstMs: 500, maxMs: 10_000 };
const ABANDONED_MS = 60_000;
const ACKNOWLEDGE_MS = 5_000;
const CATALOG_MS = 60_000;
const POLL_MS = 200;
/** One commit here for so many changes of the source, or so long. */
const BATCH = { changes: 2_000, ms: 500 };
/** Where only other databases of the source write, their log is acknowledged so often. */
const IDLE_MS = 10_000;
const FINISH_MS = 45_000;
const ROUNDS_MAX = 8;
const QUIET_MS = 1_000;
const RECOVERED_AFTER_MS = 2_000;
const FULL = 'The storage of the database is full, or writing is off.';

/** @throws DriverError invalid, which ends the import */
const lost = (reason: string): DriverError => new DriverError('invalid', reason);

export class Follower {
  private work: FollowWork;
  private observedAt = Date.now();
  private isStopped = false;
  private failure: DriverError | null = null;
  private reason: string | null = null;
  private phase: FollowObserved['phase'] = 'following';
  private applied = 0n;
  private behind = { bytes: 0, since: null as number | null };
  private done = false;
  /** The source was made read-only for a request that was refused. */
  private mustMakeWritable = false;
  private refusal: { at: string; reason: string } | null = null;
  private readonly ended: Promise<void>;

  constructor(
    private readonly cluster: Cluster,
    work: FollowWork,
  ) {
    this.work = work;
    this.ended = this.run();
  }

  /** @throws DriverError invalid where it cannot go on */
  observe(work: FollowWork): FollowObserved {
    this.observedAt = Date.now();
    this.work = { ...work, report: this.work.report };
    if (this.failure) throw this.failure;
    const { since } = this.behind;
    return {
      ...{ phase: this.phase, report: this.work.report, lag_bytes: this.behind.bytes, is_complete: this.done },
      lag_seconds: since === null ? 0 : Math.max(0, Math.round((Date.now() - since) / 1000)),
      reason: this.reason,
      finish_refusal: this.refusal?.at === work.finish?.at ? (this.refusal?.reason ?? null) : null,
    };
  }

  /** Another one may take its place: it has nothing to say. */
  get hasEnded(): boolean {
    return this.isStopped && this.failure === null && !this.done;
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    await this.ended;
  }

  private async run(): Promise<void> {
    for (let failures = 0; !this.mustEnd() && !this.done;) {
      const before = this.applied;
      try {
        await this.session();
        failures = 0;
      } catch (error) {
        if (error instanceof DriverError && error.reason === 'invalid') this.failure = error;
        this.reason = reasonOf(error);
        failures = this.applied > before ? 0 : failures + 1;
      }
      if (this.failure) return;
      const pauseMs = Math.min(RETRY.maxMs, RETRY.firstMs * 2 ** Math.min(failures, 8));
      for (const until = Date.now() + pauseMs; Date.now() < until && !this.mustEnd() && !this.done;) await sleep(100);
    }
    this.isStopped = true;
  }

  private mustEnd(): boolean {
    return this.isStopped || Date.now() - this.observedAt > ABANDONED_MS;
  }

  /** Until it is complete, or something fails. */
  private async session(): Promise<void> {
    const { slot, start, id } = this.work;
    const server = await this.work.source();
    const clients: Client[] = [];
    const over = new AbortController();
    try {
      const source = await connectToSource(server, 'sql');
      clients.push(source);
      await disableTimeouts(source);
      if (this.mustMakeWritable) await this.makeSourceWritable(source, server);
      const target = await openTarget(this.cluster, { id, origin: slot, start });
      clients.push(target.client);
      this.applied = lsnOf(target.applied);
      await requireSlot(source, slot, this.applied);
      const replication = await connectToSource(server, 'replication');
      clients.push(replication);
      const stream = new ChangeStream(replication, slot, this.applied);
      stream.start();
      void this.acknowledgeRegularly(stream, over.signal);
      await this.follow({ server, source, target: target.client, stream });
    } finally {
      over.abort();
      await Promise.all(clients.map((client) => endQuickly(client)));
    }
  }

  /** Also while a statement here takes long: the source ends a connection that says nothing (wal_sender_timeout). */
  private async acknowledgeRegularly(stream: ChangeStream, over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      await sleep(ACKNOWLEDGE_MS, undefined, { signal: over }).catch(() => undefined);
      if (!over.aborted) stream.acknowledge(this.applied, 'wanted');
    }
  }

  private async follow(at: Session): Promise<void> {
    const batch = new Batch(at.target, this.applied, (lsn) => {
      this.applied = lsn;
      this.reportAbsentRows(batch);
      at.stream.acknowledge(lsn, 'unwanted');
    });
    const begun = Date.now();
    let catalogReadAt = 0;
    while (!this.mustEnd()) {
      const message = await at.stream.next(POLL_MS);
      if (message) await batch.take(message);
      if (at.stream.isEmpty) await batch.commit();
      else await batch.commitWhenDue();
      this.measure(at.stream, batch);
      // A change that cannot be applied comes at once.
      if (batch.isAtRest && at.stream.isEmpty && Date.now() - begun > RECOVERED_AFTER_MS) this.reason = null;
      if (Date.now() - catalogReadAt > CATALOG_MS) {
        catalogReadAt = Date.now();
        await this.reportNewTables(at);
      }
      const { finish } = this.work;
      if (finish && this.refusal?.at !== finish.at) return this.finish(at, batch, finish);
    }
  }

  private measure(stream: ChangeStream, batch: Batch): void {
    const bytes = stream.sourceEnd > batch.reached ? stream.sourceEnd - batch.reached : 0n;
    this.behind = { bytes: Number(bytes), since: stream.isEmpty && !batch.isOpen ? null : batch.lastCommitAt };
  }

  private async reportNewTables({ source }: Session): Promise<void> {
    for (const one of await newTables(source, this.work.slot, this.work.excluded))
      addNotTakenOver(this.work.report, one);
  }

  private reportAbsentRows({ applier }: Batch): void {
    for (const name of applier.absent)
      addNotTakenOver(this.work.report, {
        ...{ kind: 'rows', name },
        reason: 'Rows that were changed at the source are not here: they were changed here, too.',
      });
  }

  /**
   * @returns once it is complete: all that the source has is here
   * @throws DriverError transient where it is refused. A change that failed here comes again in the next session
   */
  private async finish(at: Session, batch: Batch, request: FinishRequest): Promise<void> {
    this.phase = 'finishing';
    try {
      this.mustMakeWritable = request.read_only;
      if (request.read_only) await makeReadOnly(at.source, at.server.database);
      await requireNoPrepared(at.source);
      await this.reachQuiet(at, batch);
      const { changes } = batch;
      await this.reportNewTables(at);
      const sequences = await readSequences(at.source);
      await setSequences(sequences, at.target, this.work.report);
      await countBoth(at.source, at.target, this.work.report);
      await this.reach(at, batch, Date.now() + FINISH_MS);
      // The value of a sequence is in no transaction: those that fail advance it, too.
      const hasAdvanced = !isDeepStrictEqual(await readSequences(at.source), sequences);
      if (batch.changes !== changes || hasAdvanced) throw new DriverError('transient', STILL_WRITTEN);
      await requireNoPrepared(at.source);
      [this.mustMakeWritable, this.done] = [false, true];
    } catch (error) {
      // The next process finishes it.
      if (this.mustEnd()) throw error;
      this.phase = 'following';
      this.refusal = { at: request.at, reason: refusalText(error) };
      if (this.mustMakeWritable) await this.makeSourceWritable(at.source, at.server).catch(() => undefined);
      throw Object.assign(new DriverError('transient', this.refusal.reason), { cause: error });
    }
  }

  /** Else the next session tries again. */
  private async makeSourceWritable(source: Client, { database }: SourceServer): Promise<void> {
    await makeWritable(source, database);
    this.mustMakeWritable = false;
  }

  private async reachQuiet(at: Session, batch: Batch): Promise<void> {
    const until = Date.now() + FINISH_MS;
    for (let [quiet, rounds] = [0, 0]; quiet < 2; rounds += 1) {
      const { changes } = batch;
      await this.reach(at, batch, until);
      quiet = batch.changes === changes ? quiet + 1 : 0;
      if (quiet < 2) await this.wait(at, batch, QUIET_MS);
      if (rounds >= ROUNDS_MAX) throw new DriverError('transient', STILL_WRITTEN);
    }
  }

  /** Applies all that the source has committed by now. */
  private async reach(at: Session, batch: Batch, until: number): Promise<void> {
    const end = lsnOf(await flushedPosition(at.source));
    while (batch.reached < end || batch.isOpen) {
      if (Date.now() > until)
        throw new DriverError('transient', 'The database does not catch up within 45 seconds. Finish again later.');
      const message = await at.stream.next(POLL_MS);
      if (message) await batch.take(message);
      else at.stream.acknowledge(this.applied, 'wanted');
      if (at.stream.isEmpty) await batch.commit();
      else await batch.commitWhenDue();
      this.measure(at.stream, batch);
      if (this.mustEnd()) throw new Error('Connection terminated');
    }
  }

  private async wait(at: Session, batch: Batch, ms: number): Promise<void> {
    for (const until = Date.now() + ms; Date.now() < until;) {
      const message = await at.stream.next(POLL_MS);
      if (message) await batch.take(message);
      else await batch.commit();
    }
  }
}

const STANDBY =
  'The source is a standby now, which may not have the replication slot. The import goes on once its address leads ' +
  'to a primary.';
const STILL_WRITTEN =
  'Rows are still written at the source. Stop what writes there, or finish with make_source_read_only, and finish ' +
  'again.';

type FinishRequest = NonNullable<FollowWork['finish']>;

interface Session {
  server: SourceServer;
  source: Client;
  target: Client;
  stream: ChangeStream;
}

/** Transactions of the source that are one here. */
class Batch {
  readonly applier: Applier;
  changes = 0;
  isOpen = false;
  lastCommitAt: number | null = null;
  private count = 0;
  private begunAt = 0;
  private isWithin = false;
  private last: { end: bigint; at: Date } | null = null;
  private committedAt = Date.now();

  constructor(
    private readonly target: Client,
    public reached: bigint,
    private readonly applied: (lsn: bigint) => void,
  ) {
    this.applier = new Applier(target);
  }

  get isAtRest(): boolean {
    return !this.isOpen && !this.isWithin;
  }

  /** `reached`: all up to there was taken. */
  async take(message: StreamMessage): Promise<void> {
    if (message.kind === 'alive') {
      if (this.isWithin) return;
      if (message.end > this.reached) this.reached = message.end;
      if (!this.isOpen && Date.now() - this.committedAt > IDLE_MS) await this.commitNothing();
      return;
    }
    const change = readChange(message.body);
    if (change.kind === 'begin') {
      this.isWithin = true;
      return;
    }
    if (change.kind === 'commit') {
      this.isWithin = false;
      this.last = { end: change.end, at: change.at };
      this.lastCommitAt = change.at.getTime();
      if (change.end > this.reached) this.reached = change.end;
      return;
    }
    if (!this.isOpen && change.kind !== 'other' && change.kind !== 'relation') await this.open();
    if (change.kind !== 'relation' && change.kind !== 'other') {
      this.changes += 1;
      this.count += 1;
    }
    await this.applier.apply(change);
  }

  async commitWhenDue(): Promise<void> {
    if (this.count >= BATCH.changes || Date.now() - this.begunAt > BATCH.ms) await this.commit();
  }

  /** Unless a transaction of the source has only begun. */
  async commit(): Promise<void> {
    if (!this.isOpen || this.isWithin || !this.last) return;
    await this.applier.flush();
    const { end, at } = this.last;
    await this.target.query('select pg_replication_origin_xact_setup($1, $2)', [formatLsn(end), at]);
    await this.target.query('commit');
    this.isOpen = false;
    this.committed(end);
  }

  /** So that the source need not keep the log of its other databases. */
  private async commitNothing(): Promise<void> {
    await this.open();
    await this.target.query('select txid_current()');
    await this.target.query('select pg_replication_origin_xact_setup($1, now())', [formatLsn(this.reached)]);
    await this.target.query('commit');
    this.isOpen = false;
    this.committed(this.reached);
  }

  private async open(): Promise<void> {
    await this.target.query('begin');
    [this.isOpen, this.begunAt, this.count] = [true, Date.now(), 0];
  }

  private committed(lsn: bigint): void {
    this.committedAt = Date.now();
    this.applied(lsn);
  }
}

/** @throws DriverError invalid where changes are lost, transient where the address leads to a standby */
async function requireSlot(source: Client, name: string, applied: bigint): Promise<void> {
  if (await isStandby(source)) throw new DriverError('transient', STANDBY);
  const slot = await findSlot(source, name);
  if (!slot) throw lost(`The replication slot ${name} is not at the source any more. Import again.`);
  if (slot.wal_status === 'lost') {
    const reason = slot.invalidation_reason ?? 'max_slot_wal_keep_size';
    throw lost(`The source has removed log that was not read yet (${reason}). Import again.`);
  }
  // It would leave out what is committed there until its log is as long again.
  if (applied > lsnOf(await flushedPosition(source)))
    throw lost('The source has lost changes that are here: it was restored, or its standby was behind. Import again.');
  if (slot.confirmed !== null && lsnOf(slot.confirmed) > applied)
    throw lost('The database was restored to a time before changes that the source does not send again. Import again.');
}

function refusalText(error: unknown): string {
  if (isUnavailable(error)) return 'A connection was lost while it was finished. Finish again.';
  return reasonOf(error);
}

function reasonOf(error: unknown): string {
  if (error instanceof DriverError) return toSentence(error.message);
  const { code, message } = error as { code?: string; message: string };
  if (code === '25006') return FULL;
  if (isUnavailable(error)) return 'A connection was lost. The import goes on by itself.';
  return toSentence(cleanFailureText(failureAtSource(message ? error : new Error(String(code))).message));
}

// Works the queue of mail: claims recipients that are due, hands their messages on, and writes how that went. A process
// that dies here leaves its claims to the next one, which tries again: at least once, with the same Message-ID.
import type { Config } from '../../../core/config';
import { DriverError, isEngineAway } from '../../../core/driver';
import type { DkimKey } from '../../../core/protocols/dkim';
import { returnPathLocal } from '../../../core/mail/mail_reference';
import type { Logger } from '../../../core/log/log';
import type { SecretBox } from '../../../core/secrets';
import type { ControlDatabase } from '../../../db/control_database';
import {
  type SigningIdentity,
  outgoingMessage,
  type Route,
  classifyRejection,
  type HopResult,
  type Outbound,
  type Transport,
} from '../../../engines/mail';
import { startClaimLoop } from '../../claim_loop';
import { waitingReason } from '../../failure_policy';
import { openWakeSignal, type WakeSignal } from '../../wake_signal';
import { isPublished, returnPathOf } from '../../../models/email/email_domain/instructions';
import { openDkimKeys } from '../../../models/email/email_domain/keys';
import { DELIVERIES } from '../../../models/email/mail/accept';
import {
  claimDeliveries,
  endAttempts,
  releaseDeliveries,
  type AttemptEnd,
  type ClaimedDelivery,
  type SigningDomain,
} from '../../../models/email/mail/queue';
import { openBatch } from './batch';
import { openDestinations, type Destinations } from './destinations';
import type { MailStore } from './store';

interface MailLoop {
  /** Lets the attempts that are under way end. */
  stop(): Promise<void>;
}

interface MailLoopParts {
  config: Config;
  database: ControlDatabase;
  secrets: SecretBox;
  store: MailStore;
  transport: Transport;
  routeOf(destination: string): Promise<Route>;
  /** A message with tracked links and pictures; null where it is sent unchanged. */
  tracked(delivery: ClaimedDelivery, identities: readonly SigningIdentity[], from: string): Promise<Outbound | null>;
  log: Logger;
  listen(handlers: Record<string, (payload: string) => void>): { close(): Promise<void> };
}

const CONCURRENCY = 40;
/** Attempts whose end is still to be written. */
const UNWRITTEN_MAX = 400;
const POLL_MS = 1_000;
/** Claims of few rows come no closer than this: each costs as much as one of many. */
const CLAIM_PAUSE_MS = 20;
const ENDS_AT_ONCE = 200;
const ENDS_GATHER_MS = 15;
const KEYS_MAX = 1000;
const MINUTE_MS = 60_000;
/** To the next look at a file store that is away. */
const AWAY_MS = MINUTE_MS;
/** After this time no further server is tried: the claim of the row would be over. */
const ATTEMPT_MS = 5 * MINUTE_MS;
/** Minutes to the next attempt: quick at first, then every four hours until the 72 hours are over. */
const RETRY_MINUTES = [2, 5, 10, 20, 40, 80, 160, 240];

interface State extends MailLoopParts {
  destinations: Destinations;
  /** By their sealed text. */
  keys: Map<string, readonly DkimKey[]>;
  end(end: AttemptEnd): Promise<void>;
}

export function startMailLoop(parts: MailLoopParts): MailLoop {
  const { database, store } = parts;
  const ends = openBatch<AttemptEnd, null>(
    ENDS_AT_ONCE,
    async (batch) => {
      await store.remove(await endAttempts(database, batch));
      return batch.map(() => null);
    },
    ENDS_GATHER_MS,
  );
  const state: State = {
    ...{ ...parts, destinations: openDestinations(), keys: new Map() },
    end: async (end) => void (await ends.add(end)),
  };
  const signal = openWakeSignal();
  const work: Work = { sending: 0, unwritten: 0, signal };
  const loop = startClaimLoop<ClaimedDelivery>(
    {
      prepare: () => releaseDeliveries(database),
      room: () => Math.min(CONCURRENCY - work.sending, UNWRITTEN_MAX - work.unwritten),
      places: CONCURRENCY,
      claim: (limit, passOver) => claimDeliveries(database, limit, state.destinations.room(), passOver),
      start(due, track) {
        for (const delivery of due) {
          let release = (): void => {};
          release = track(
            start(state, work, delivery, () => release()),
            delivery.account,
          );
        }
      },
      pauseAfter: (claimed) => (claimed === 0 ? 'poll' : claimed < CONCURRENCY / 2 ? CLAIM_PAUSE_MS : 0),
      pollMs: POLL_MS,
      failed: (error) => parts.log.warn({ err: error }, 'mail could not be claimed'),
    },
    signal,
  );
  const listener = parts.listen({ due: (table) => (table === DELIVERIES ? signal.notify() : undefined) });
  return {
    async stop() {
      await loop.stopClaiming();
      await listener.close();
      await loop.stop();
    },
  };
}

interface Work {
  /** Attempts that a server has not answered yet. */
  sending: number;
  /** Attempts whose end is not written yet: those, and more. */
  unwritten: number;
  signal: WakeSignal;
}

/** @param sent called when a server has answered */
async function start(state: State, work: Work, delivery: ClaimedDelivery, sent: () => void): Promise<void> {
  work.sending += 1;
  work.unwritten += 1;
  const notify = (): void => {
    // A slot is free; claims of one row at a time would cost more than a moment's wait.
    if (work.sending <= CONCURRENCY / 2) work.signal.notify();
  };
  try {
    const end = await deliver(state, delivery).finally(() => {
      work.sending -= 1;
      sent();
      notify();
    });
    await state.end(end);
  } catch (error) {
    state.log.error({ err: error, message: delivery.message_id }, 'a delivery has failed');
  } finally {
    work.unwritten -= 1;
    notify();
  }
}

async function deliver(state: State, delivery: ClaimedDelivery): Promise<AttemptEnd> {
  const { message_id, number, fence } = delivery;
  const common = { message_id, number, fence, retry_in_ms: null, rejection: null, counts: true };
  if (state.config.mailMode === 'sink') return { ...common, status: 'kept', response: 'Kept in the sink.' };
  try {
    const result = await attempt(state, delivery);
    return { ...common, ...endOf(delivery, result), response: result.response };
  } catch (error) {
    state.log.error({ err: error, message: message_id }, 'a message could not be sent');
    // Neither the message nor its recipient is at fault, however long it takes.
    if (isEngineAway(error))
      return { ...common, status: 'queued', response: waitingReason(error), retry_in_ms: AWAY_MS, counts: false };
    const result = failedAttempt(error);
    return { ...common, ...endOf(delivery, result), response: result.response };
  }
}

/** What the file store does not have now may be on a machine that comes back. */
function failedAttempt(error: unknown): HopResult {
  const isGone = (error as NodeJS.ErrnoException).code === 'ENOENT';
  const internal = error instanceof DriverError ? error.message : 'The platform met an internal error.';
  const response = isGone ? 'The file of the message is gone.' : internal;
  return { kind: isGone ? 'never' : 'later', code: null, response, stage: 'other', isUnreachable: false };
}

function endOf(delivery: ClaimedDelivery, result: HopResult) {
  if (result.kind === 'delivered') return { status: 'delivered' as const };
  const bounced = { status: 'bounced' as const, rejection: classifyRejection({ ...result, ...delivery }) };
  if (result.kind === 'never') return bounced;
  const minutes = RETRY_MINUTES[Math.min(delivery.attempts, RETRY_MINUTES.length) - 1] ?? 2;
  const retry_in_ms = Math.round(minutes * MINUTE_MS * (0.9 + Math.random() * 0.2));
  if (Date.now() + retry_in_ms >= Date.parse(delivery.expires_at)) return bounced;
  return { status: 'queued' as const, retry_in_ms };
}

const UNTRIED: HopResult = {
  ...{ kind: 'later', code: null, response: 'No server.', stage: 'other', isUnreachable: true },
};

/** One server after the other, until one of them has answered. */
async function attempt(state: State, delivery: ClaimedDelivery): Promise<HopResult> {
  const { destinations, transport } = state;
  const route = await state.routeOf(delivery.destination);
  if (route.kind === 'none')
    return { ...UNTRIED, kind: 'never', code: 550, response: route.response, stage: 'rcpt', isUnreachable: false };
  if (route.kind === 'later') return { ...UNTRIED, response: route.response };
  const message = await messageFor(state, delivery);
  const release = await destinations.enter(delivery.destination);
  try {
    let last = UNTRIED;
    const until = Date.now() + ATTEMPT_MS;
    for (const hop of route.hops) {
      last = await transport.send(hop, message);
      if (!last.isUnreachable || Date.now() > until) break;
    }
    destinations.note(delivery.destination, last);
    return last;
  } finally {
    release();
  }
}

async function messageFor(state: State, delivery: ClaimedDelivery): Promise<Outbound> {
  const { store, secrets } = state;
  const { domain, recipient: to, body_hash, body_offset, size_bytes } = delivery;
  const identities = domain ? identitiesOf(state, domain) : [];
  const local = returnPathLocal(secrets, delivery);
  // What answers automatically gets no answer (RFC 3834 §3.1.4, RFC 8098 §3).
  const from = domain && delivery.sender ? `${local}@${returnPathOf(domain)}` : delivery.sender;
  const tracked = await state.tracked(delivery, identities, from);
  if (tracked) return tracked;
  const text = await store.textOf(delivery);
  const fields = [referenceField(local)];
  return outgoingMessage({ text, body_offset, body_hash, size_bytes, from, to, fields, identities });
}

/** Complaints quote the message: this field identifies the recipient (RFC 5965 makes the return path optional). */
export function referenceField(local: string): { name: string; raw: string } {
  return { name: 'feedback-id', raw: `Feedback-ID: ${local}:platform` };
}

/** Both keys sign, Ed25519 only once its record was found. */
function identitiesOf(state: State, domain: SigningDomain): SigningIdentity[] {
  return keysOf(state, domain)
    .filter(({ role }) => role === 'current')
    .filter((key) => key.algorithm === 'rsa' || isPublished(key, domain.findings))
    .map(({ selector, algorithm, private_key }) => ({ domain: domain.name, selector, algorithm, private_key }));
}

function keysOf({ keys, secrets }: State, domain: SigningDomain): readonly DkimKey[] {
  const known = keys.get(domain.dkim_keys);
  if (known) return known;
  if (keys.size >= KEYS_MAX) keys.clear();
  const opened = openDkimKeys(secrets, domain);
  keys.set(domain.dkim_keys, opened);
  return opened;
}

// Sends the notifications of the outbox. When a process dies, its messages wait until its claims expire; then they are
// sent again with the same id.
import type { Logger } from '../../core/log/log';
import type { Delivery, Outgoing } from '../../core/notifications';
import type { SecretBox } from '../../core/secrets';
import type { ControlDatabase } from '../../db/control_database';
import type { Sender } from '../../drivers/notifier';
import { startClaimLoop } from '../claim_loop';
import { openWakeSignal } from '../wake_signal';
import { claimMessages, endAttempt, type ClaimedMessage } from '../../models/observers/notification/delivery';
import { NOTIFICATIONS } from '../../models/observers/notification/outbox';
import { openConfig } from '../../models/observers/notifier';

interface DeliveryLoop {
  /** Lets the attempts that are under way end. */
  stop(): Promise<void>;
}

export interface DeliveryParts {
  database: ControlDatabase;
  /** Where links lead; with PORT=0 known only once the API listens. */
  baseUrl(): string;
  secrets: SecretBox;
  sender: Sender;
  log: Logger;
  listen(handlers: Record<string, (payload: string) => void>): { close(): Promise<void> };
}

/** Attempts at a time. */
const CONCURRENCY = 32;
const POLL_MS = 1_000;

export function startDeliveryLoop(parts: DeliveryParts): DeliveryLoop {
  const wakeSignal = openWakeSignal();
  let underWay = 0;
  const attempt = async (message: ClaimedMessage): Promise<void> => {
    underWay += 1;
    await deliver(parts, message);
    underWay -= 1;
    // The next one of its subject may go.
    wakeSignal.notify();
  };
  const loop = startClaimLoop<ClaimedMessage>(
    {
      room: () => CONCURRENCY - underWay,
      places: CONCURRENCY,
      claim: (limit, passOver) => claimMessages(parts.database, limit, passOver),
      start: (messages, track) => messages.forEach((message) => track(attempt(message), message.account)),
      pauseAfter: (claimed) => (claimed === 0 ? 'poll' : 0),
      pollMs: POLL_MS,
      failed: (error) => parts.log.warn({ err: error }, 'messages could not be claimed'),
    },
    wakeSignal,
  );
  const listener = parts.listen({ due: (table) => (table === NOTIFICATIONS ? wakeSignal.notify() : undefined) });
  return {
    async stop() {
      await loop.stopClaiming();
      await listener.close();
      await loop.stop();
    },
  };
}

async function deliver(parts: DeliveryParts, message: ClaimedMessage): Promise<void> {
  try {
    const startedAt = performance.now();
    const delivery = await send(parts, message);
    await endAttempt(parts.database, message, delivery, performance.now() - startedAt);
  } catch (error) {
    parts.log.error({ err: error, message: message.message_id }, 'an attempt could not be recorded; it is made again');
  }
}

async function send({ sender, secrets, baseUrl, log }: DeliveryParts, message: ClaimedMessage): Promise<Delivery> {
  const { notifier, notifier_id: id } = message;
  if (!notifier) return dropped('The notifier was deleted.');
  if (!notifier.enabled) return dropped('The notifier is switched off.');
  try {
    const target = openConfig({ secrets }, { id, sealed_config: notifier.sealed_config });
    return await sender.send(notifier.type, target, outgoing(message, notifier.name, baseUrl()));
  } catch (error) {
    log.error({ err: error, message: message.message_id }, 'a message could not be made');
    return { delivered: false, status_code: null, error: 'The platform met an internal error.', retry: null };
  }
}

function dropped(error: string): Delivery {
  return { delivered: false, status_code: null, error, retry: 'never' };
}

function outgoing(message: ClaimedMessage, name: string, baseUrl: string): Outgoing {
  const { message_id, event, created_at, project_id, project_name, notifier_id, data } = message;
  return {
    ...{ id: message_id, event, at: created_at, data },
    project: { id: project_id, name: project_name },
    notifier: { id: notifier_id, name },
    link: linkOf(message, baseUrl),
  };
}

function linkOf({ event, data, project_id }: ClaimedMessage, baseUrl: string): string | null {
  if (event.startsWith('installation.')) return `${baseUrl}/installation/alarms`;
  if (event.startsWith('observer.')) return `${baseUrl}/v2/observers/${data.observer.id}${placeOf(event)}`;
  // They lead to pages for people: nothing is decided by opening them.
  if (data.action === 'approval.requested') return `${baseUrl}/projects/${project_id}/approvals/${data.resource.id}`;
  return data.action === 'api_key.paused' ? `${baseUrl}/projects/${project_id}/keys` : null;
}

/** Below the observer: a certificate that expires soon is no incident. */
function placeOf(event: ClaimedMessage['event']): string {
  return event === 'observer.certificate_expiring' ? '' : '/incidents';
}

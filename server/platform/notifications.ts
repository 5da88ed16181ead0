// Notifications of PostgreSQL (NOTIFY), for those in this process who wait for them.
import { EventEmitter } from 'node:events';
import type { Notifications } from '../../core/context';

export interface NotificationHub extends Notifications {
  publish(channel: string, key: string): void;
}

/** How often a waiter polls without a notification: one may be lost with its connection. */
const POLL_MS = 2_000;
/** Sequence numbers that are kept; the oldest go. */
const SEQUENCES_MAX = 10_000;

export function openNotificationHub(): NotificationHub {
  const emitter = new EventEmitter().setMaxListeners(0);
  const sequences = new Map<string, number>();
  return {
    publish(channel, key) {
      const name = `${channel}:${key}`;
      const sequence = (sequences.get(name) ?? 0) + 1;
      sequences.delete(name);
      sequences.set(name, sequence);
      if (sequences.size > SEQUENCES_MAX) sequences.delete(sequences.keys().next().value as string);
      emitter.emit(name);
    },
    async wait({ channel, key }, seen, ms, signal) {
      const name = `${channel}:${key}`;
      if ((sequences.get(name) ?? 0) === seen && !signal.aborted)
        await waitForEvent(emitter, name, Math.min(ms, POLL_MS), signal);
      return sequences.get(name) ?? 0;
    },
  };
}

function waitForEvent(emitter: EventEmitter, name: string, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      emitter.off(name, end);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    emitter.on(name, end);
    signal.addEventListener('abort', end);
  });
}

// Notifications of PostgreSQL (NOTIFY), for those in this process who wait for them.
import { EventEmitter } from 'node:events';
import type { Notifications } from '../../core/context';

export interface NotificationHub extends Notifications {
  publish(channel: string, key: string): void;
}

/** Interval at which a waiter polls without a notification, which may be lost with its connection. */
const POLL_MS = 2_000;
/** Sequence numbers that are kept; the oldest go. */
const SEQUENCES_MAX = 10_000;

export function openNotificationHub(): NotificationHub {
  const emitter = new EventEmitter().setMaxListeners(0);
  const sequences = new Map<string, number>();
  // The sum of several topics' sequences rises with each of them.
  const sum = (names: readonly string[]): number => names.reduce((all, name) => all + (sequences.get(name) ?? 0), 0);
  return {
    publish(channel, key) {
      const name = `${channel}:${key}`;
      const sequence = (sequences.get(name) ?? 0) + 1;
      sequences.delete(name);
      sequences.set(name, sequence);
      if (sequences.size > SEQUENCES_MAX) sequences.delete(sequences.keys().next().value as string);
      emitter.emit(name);
    },
    async wait(topics, seen, ms, signal) {
      const names = topics.map(({ channel, key }) => `${channel}:${key}`);
      if (sum(names) === seen && !signal.aborted) await waitForEvent(emitter, names, Math.min(ms, POLL_MS), signal);
      return sum(names);
    },
  };
}

function waitForEvent(emitter: EventEmitter, names: readonly string[], ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      for (const name of names) emitter.off(name, end);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    for (const name of names) emitter.on(name, end);
    signal.addEventListener('abort', end);
  });
}

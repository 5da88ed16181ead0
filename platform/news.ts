// What was told by NOTIFY, for those in this process who wait for it.
import { EventEmitter } from 'node:events';
import type { News } from '../core/context';

export interface NewsDesk extends News {
  tell(channel: string, key: string): void;
}

/** How often somebody who waits looks without having been told: a notification may be lost with its connection. */
const LOOK_MS = 2_000;
/** Marks that are kept; those of keys that nobody has waited for in a long time go. */
const MARKS_MAX = 10_000;

export function openNewsDesk(): NewsDesk {
  const desk = new EventEmitter().setMaxListeners(0);
  const marks = new Map<string, number>();
  return {
    tell(channel, key) {
      const name = `${channel}:${key}`;
      const mark = (marks.get(name) ?? 0) + 1;
      marks.delete(name);
      marks.set(name, mark);
      if (marks.size > MARKS_MAX) marks.delete(marks.keys().next().value as string);
      desk.emit(name);
    },
    async wait({ channel, key }, seen, ms, signal) {
      const name = `${channel}:${key}`;
      if ((marks.get(name) ?? 0) === seen && !signal.aborted) await told(desk, name, Math.min(ms, LOOK_MS), signal);
      return marks.get(name) ?? 0;
    },
  };
}

function told(desk: EventEmitter, name: string, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      desk.off(name, end);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    desk.on(name, end);
    signal.addEventListener('abort', end);
  });
}

// Whether the clock of this machine is right, by the time that servers elsewhere say.
import type { Reading } from '../../../models/observers/installation_alarm/alarm_rules';

/** What a server said: between `sentAt` and `receivedAt` of this machine its clock showed `from` to `to`. In ms. */
export interface ClockAnswer {
  server: string;
  sentAt: number;
  receivedAt: number;
  from: number;
  to: number;
}

const OFF_MS = 2_000;

/** By how much this clock is wrong at least, in ms; positive: it is ahead. */
export function clockOffset({ sentAt, receivedAt, from, to }: ClockAnswer): number {
  if (sentAt > to) return sentAt - to;
  return receivedAt < from ? receivedAt - from : 0;
}

/** All servers that answered must say so: a single one may be wrong itself. */
export function clockReadings(answers: readonly ClockAnswer[]): Reading[] {
  const offsets = answers.map(clockOffset);
  const isAhead = offsets.every((offset) => offset > OFF_MS);
  const isBehind = offsets.every((offset) => offset < -OFF_MS);
  if (!answers.length || !(isAhead || isBehind)) return [];
  const seconds = Math.floor(Math.min(...offsets.map(Math.abs)) / 1000);
  const servers = answers.map(({ server }) => server).join(', ');
  return [
    {
      ...{ name: 'clock', subject: '' },
      title: `The clock of the machine is ${isAhead ? 'ahead' : 'behind'} by at least ${seconds} s`,
      detail:
        `So say ${servers}. Certificates, signatures and one-time codes depend on it: switch the synchronisation of ` +
        'time on, `timedatectl set-ntp true`.',
    },
  ];
}

/** From the field Date, which has whole seconds; null where a cache may have kept it. */
export function clockAnswerOf(
  server: string,
  headers: Headers,
  sentAt: number,
  receivedAt: number,
): ClockAnswer | null {
  const from = Date.parse(headers.get('date') ?? '');
  if (Number.isNaN(from) || Number(headers.get('age') ?? 0) > 0) return null;
  return { server, sentAt, receivedAt, from, to: from + 1000 };
}

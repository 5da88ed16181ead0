// Notifies secondaries of zone changes (NOTIFY, RFC 1996), with a few retries until each has responded.
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { isIP } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { encodeName, labelsOfName } from './wire/names';
import { TYPE } from './wire/rdata';
import { signRequest, type TsigKey } from './wire/tsig';

export interface Secondary {
  address: string;
  port: number;
}

export interface Notifier {
  /** Sends a notification soon; pending notifications of the zone are merged. */
  notify(zone: string): void;
  close(): void;
}

const PAUSES_MS = [500, 1_000, 2_000, 4_000, 8_000];
const AT_A_TIME = 20;
/** NOTIFY with the AA bit. */
const FLAGS = (4 << 11) | 0x0400;

export function openNotifier(secondaries: readonly Secondary[], key: TsigKey | null): Notifier {
  const waiting = new Set<string>();
  const stopping = new AbortController();
  let running = 0;
  const work = async (): Promise<void> => {
    for (const zone of waiting) {
      waiting.delete(zone);
      await Promise.all(secondaries.map((secondary) => notifySecondary(secondary, zone, key, stopping.signal)));
    }
    running -= 1;
  };
  return {
    notify(zone) {
      if (!secondaries.length || stopping.signal.aborted) return;
      waiting.add(zone);
      if (running >= AT_A_TIME) return;
      running += 1;
      void work();
    },
    close: () => stopping.abort(),
  };
}

async function notifySecondary(to: Secondary, zone: string, key: TsigKey | null, signal: AbortSignal): Promise<void> {
  for (const pauseMs of PAUSES_MS) {
    if (signal.aborted || (await send(to, messageOf(zone, key), pauseMs, signal))) return;
  }
}

function messageOf(zone: string, key: TsigKey | null): Buffer {
  const head = Buffer.alloc(12);
  head.writeUInt16BE(randomInt(0x10000), 0);
  head.writeUInt16BE(FLAGS, 2);
  head.writeUInt16BE(1, 4);
  const question = Buffer.concat([encodeName(labelsOfName(zone)), Buffer.from([0, TYPE.SOA, 0, 1])]);
  const message = Buffer.concat([head, question]);
  return key ? signRequest(message, key) : message;
}

/** @returns whether a response was received within the time */
async function send({ address, port }: Secondary, message: Buffer, ms: number, signal: AbortSignal): Promise<boolean> {
  const socket = createSocket(isIP(address) === 6 ? 'udp6' : 'udp4');
  const late = new AbortController();
  const answered = new Promise<boolean>((resolve) => {
    socket.on('error', () => {});
    socket.on('message', (answer) => resolve(answer.subarray(0, 2).equals(message.subarray(0, 2))));
    // A callback would get the error of an address without a route in the place of the event above.
    socket.once('connect', () => socket.send(message, () => {}));
    socket.connect(port, address);
  });
  const ends = sleep(ms, false, { signal: AbortSignal.any([signal, late.signal]) }).catch(() => false);
  try {
    return await Promise.race([answered, ends]);
  } finally {
    late.abort();
    socket.close();
  }
}

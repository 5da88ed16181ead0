// Messages of the protocol platform.run.v1: a byte for the channel, then the content.
import os from 'node:os';
import type { OutputStream } from '../../drivers/runtime/attachment';

const CHANNEL = { stdin: 0, stdout: 1, stderr: 2, control: 3 } as const;

export type Command =
  | { type: 'resize'; rows: number; columns: number }
  | { type: 'signal'; signal: NodeJS.Signals }
  | { type: 'close_stdin' };

type ServerControl =
  | { type: 'ready'; writer: boolean; tty: boolean }
  | { type: 'exit'; code: number | null; signal: string | null }
  | { type: 'error'; message: string };

/** Size of a terminal that a client may ask for. */
const SIDE_MAX = 4096;

export function frame(stream: OutputStream, bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.of(CHANNEL[stream]), bytes]);
}

export function controlMessage(control: ServerControl): Buffer {
  return Buffer.concat([Buffer.of(CHANNEL.control), Buffer.from(JSON.stringify(control))]);
}

/** A message of a client; null for one that the protocol does not have. */
export function parseFrame(data: Buffer): { input: Buffer } | { command: Command } | null {
  if (data[0] === CHANNEL.stdin) return { input: data.subarray(1) };
  if (data[0] !== CHANNEL.control) return null;
  const command = parseCommand(data.subarray(1).toString());
  return command && { command };
}

function parseCommand(text: string): Command | null {
  const value = parseObject(text);
  if (value === null) return null;
  const { type, rows, columns, signal } = value;
  if (type === 'close_stdin') return { type };
  if (type === 'resize' && isSide(rows) && isSide(columns)) return { type, rows, columns };
  if (type === 'signal' && isSignal(signal)) return { type, signal };
  return null;
}

function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

function isSide(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) > 0 && (value as number) <= SIDE_MAX;
}

function isSignal(value: unknown): value is NodeJS.Signals {
  return typeof value === 'string' && Object.hasOwn(os.constants.signals, value);
}

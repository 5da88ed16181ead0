// HEALTHCHECK of an image: `Healthcheck` of its configuration, as Docker writes it
// (docs.docker.com/reference/dockerfile, "HEALTHCHECK"; moby/docker-image-spec).
import type { ImageHealthCheck } from '../../core/protocols/image_settings';
import { broken } from './manifest';

const NANOSECONDS = 1e9;
const SECONDS_MAX = 24 * 3600;
const RETRIES_MAX = 1000;
const ARGUMENTS_MAX = 1000;
const SHELL = ['/bin/sh', '-c'];
const DEFAULTS = { interval: 30, timeout: 30, startPeriod: 0, retries: 3 };
/** Docker waits 5 seconds; a deployment waits for the first success. */
const START_INTERVAL_SECONDS = 2;

/** @returns null if the image declares no health check. @throws ImageError */
export function parseHealthCheck(value: unknown, shell: readonly string[]): ImageHealthCheck | 'none' | null {
  if (typeof value !== 'object' || value === null) return null;
  const { Test, Interval, Timeout, StartPeriod, StartInterval, Retries } = value as Record<string, unknown>;
  if (Test === undefined || Test === null) return null;
  const [kind, ...words] = stringsIn(Test);
  if (kind === undefined) return null;
  if (kind === 'NONE') return 'none';
  const interval = secondsOf(Interval) ?? DEFAULTS.interval;
  const retries = typeof Retries === 'number' && Retries > 0 ? Math.round(Retries) : DEFAULTS.retries;
  return {
    command: commandOf(kind, words, shell),
    interval_seconds: interval,
    timeout_seconds: secondsOf(Timeout) ?? DEFAULTS.timeout,
    start_period_seconds: secondsOf(StartPeriod) ?? DEFAULTS.startPeriod,
    start_interval_seconds: secondsOf(StartInterval) ?? Math.min(START_INTERVAL_SECONDS, interval),
    retries: Math.min(RETRIES_MAX, retries),
  };
}

function commandOf(kind: string, words: string[], shell: readonly string[]): string[] {
  if (kind === 'CMD' && words.length > 0) return words;
  const [line] = words;
  if (kind === 'CMD-SHELL' && words.length === 1 && line !== undefined)
    return [...(shell.length ? shell : SHELL), line];
  throw broken('its HEALTHCHECK is neither NONE nor a command');
}

function stringsIn(test: unknown): string[] {
  const isList = Array.isArray(test) && test.length <= ARGUMENTS_MAX;
  if (isList && test.every((word) => typeof word === 'string' && !word.includes('\0'))) return test as string[];
  throw broken('its HEALTHCHECK is not a list of strings');
}

/** Converts nanoseconds to whole seconds, at least one. null: not set; 0 means the same. */
function secondsOf(value: unknown): number | null {
  if (typeof value !== 'number' || !(value > 0)) return null;
  return Math.min(SECONDS_MAX, Math.max(1, Math.ceil(value / NANOSECONDS)));
}

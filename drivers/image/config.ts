// The configuration of an image: how it is run (image-spec, config.md).
import { constants } from 'node:os';
import type { ImageSettings } from '../../core/protocols/image_settings';
import { parseHealthCheck } from './health_check';
import { broken } from './manifest';
import { readJson } from './registry_token';

interface ImageConfiguration {
  /** Digests of the unpacked layers, the lowest first. */
  layers: string[];
  settings: Omit<ImageSettings, 'user'>;
  /** As written: `node`, `1000:1000`, or empty. */
  user: string;
}

const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** @throws ImageError */
export function parseConfiguration(content: Buffer, layerCount: number): ImageConfiguration {
  const json = readJson(content);
  const config = objectOf(json.config);
  const layers = texts(objectOf(json.rootfs).diff_ids);
  if (layers.length !== layerCount || !layers.every((id) => /^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$/.test(id)))
    throw broken('its configuration names other layers than its manifest');
  const command = [...texts(config.Entrypoint), ...texts(config.Cmd)];
  const exposed_port = exposedPortOf(config.ExposedPorts);
  const health_check = parseHealthCheck(config.Healthcheck, texts(config.Shell));
  return {
    layers,
    user: typeof config.User === 'string' ? config.User : '',
    settings: {
      command,
      env: environmentOf(texts(config.Env)),
      working_directory: directoryOf(config.WorkingDir),
      stop_signal: signalOf(config.StopSignal),
      ...(exposed_port !== null && { exposed_port }),
      ...(health_check !== null && { health_check }),
    },
  };
}

export function objectOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

/** @throws ImageError for anything but a list of texts; absent is empty */
export function texts(value: unknown): string[] {
  if (value === undefined || value === null) return [];
  const isList = Array.isArray(value) && value.length <= 10_000;
  if (isList && value.every((text) => typeof text === 'string' && !text.includes('\0'))) return value as string[];
  throw broken('its configuration has a list with an entry that is not a string');
}

/** Names that no shell could export are left out, as the variables of an application have none of them. */
function environmentOf(lines: string[]): Record<string, string> {
  const pairs = lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)] as const);
  const known = pairs.filter(([name]) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name));
  return { PATH: DEFAULT_PATH, ...Object.fromEntries(known) };
}

function directoryOf(value: unknown): string {
  const text = typeof value === 'string' && value !== '' && !value.includes('\0') ? value : '/';
  const parts = text.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..')) throw broken('its WorkingDir contains `..`');
  return `/${parts.join('/')}`;
}

/** `{"8080/tcp": {}}`. null: no port, or several, of which none is marked as the HTTP port. */
function exposedPortOf(value: unknown): number | null {
  const ports = Object.keys(objectOf(value)).flatMap((key) => /^(\d{1,5})(?:\/tcp)?$/i.exec(key)?.[1] ?? []);
  const [port = 0] = ports.map(Number);
  return ports.length === 1 && port > 0 && port < 65_536 ? port : null;
}

/** `SIGQUIT`, `QUIT` or `3`. What this system does not know is not taken: a stop begins with SIGTERM then. */
function signalOf(value: unknown): string | null {
  const text = typeof value === 'string' ? value.trim().toUpperCase() : '';
  const found = Object.entries(constants.signals).find(([name, number]) =>
    /^\d+$/.test(text) ? number === Number(text) : name === text || name === `SIG${text}`,
  );
  return found?.[0] ?? null;
}

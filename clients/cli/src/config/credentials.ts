// Logins, one for each server, in a file that only the person may read.
import * as fs from 'node:fs';
import * as path from 'node:path';
import { EXIT, Failure } from '../failure';
import { configDirectory, readFileIfThere, writePrivateFile } from './files';

export interface Login {
  /** `oauth`: a login of `svc login`. `key`: an API key that the person brought. */
  kind: 'oauth' | 'key';
  access_token: string;
  refresh_token?: string;
  /** Milliseconds since 1970. */
  expires_at?: number;
  /** When the login itself ends unless it is used, in milliseconds since 1970. */
  login_expires_at?: number;
  user?: string;
  /** The project that commands act in where nothing else says one. */
  project_id?: string;
}

export interface Credentials {
  /** The server of the last login. */
  current?: string;
  servers: Record<string, Login>;
}

export const credentialsFile = (): string => path.join(configDirectory(), 'credentials.json');
export const credentialsLock = (): string => `${credentialsFile()}.lock`;

/** @throws Failure where others can read the file, or it is damaged */
export function readCredentials(): Credentials {
  const file = credentialsFile();
  const text = readFileIfThere(file);
  if (text === undefined) return { servers: {} };
  requirePrivate(file);
  try {
    const { current, servers } = JSON.parse(text) as Credentials;
    return { ...(current && { current }), servers: servers ?? {} };
  } catch {
    throw new Failure(`${file} is damaged.`, EXIT.denied, ['Delete it, then run `svc login`.']);
  }
}

export function writeCredentials(credentials: Credentials): void {
  writePrivateFile(credentialsFile(), `${JSON.stringify(credentials, null, 2)}\n`);
}

function requirePrivate(file: string): void {
  // Windows has no such modes.
  if (process.platform === 'win32' || !(fs.statSync(file).mode & 0o077)) return;
  throw new Failure(`Others can read ${file}, which contains tokens.`, EXIT.denied, [`Run: chmod 600 ${file}`]);
}

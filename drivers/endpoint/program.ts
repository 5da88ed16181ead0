// Interface of endpoint programs.
import type { ServerSpec } from '../database';
import type { ListenerSpec } from '../endpoint';
import type { ServerDirectory } from '../hosted_server/server_directory';

/** An endpoint program. */
export interface ListenerProgram<S extends ListenerSpec> {
  name: 'pgbouncer' | 'haproxy';
  /** Message for users, where it is not installed. */
  missing: string;
  size: ServerSpec['size'];
  /** Startup parameters, whose change requires a restart. */
  startup(spec: S): unknown;
  /** Access permissions, one string each: removing one ends all sessions, since they cannot be told apart. */
  rights(spec: S): string[];
  /** All other parameters, which a running program can reload. */
  reloadable(spec: S): unknown;
  /** Files for `conf`, by name. @param version of the program @throws DriverError invalid */
  files(serverDirectory: ServerDirectory, spec: S, version: string): Record<string, string>;
  /** Arguments after the program. */
  arguments(serverDirectory: ServerDirectory): string[];
  /** Further directories that it reads. */
  readable(spec: S): string[];
  /** Reloads the written files. @throws Error of any kind */
  reload(serverDirectory: ServerDirectory, spec: S, sessions: 'stay' | 'end'): Promise<void>;
  /** A log line for users; null: not relevant. */
  logLine(text: string): string | null;
}

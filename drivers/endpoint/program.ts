// What the programs of endpoints differ in.
import type { ServerSpec } from '../database';
import type { ListenerSpec } from '../endpoint';
import type { ServerDirectory } from '../hosted_server/server_directory';

/** What one program is. */
export interface ListenerProgram<S extends ListenerSpec> {
  name: 'pgbouncer' | 'haproxy';
  /** For users, where it is not installed. */
  missing: string;
  size: ServerSpec['size'];
  /** What it is started with; another one takes a new start. */
  startup(spec: S): unknown;
  /**
   * What it lets in, each as a word: where one goes, sessions have to end, and all do, because nobody tells them apart.
   */
  rights(spec: S): string[];
  /** Everything else of the spec, which a running one can be told. */
  reloadable(spec: S): unknown;
  /** Files for `conf`, by name. @throws DriverError invalid */
  files(serverDirectory: ServerDirectory, spec: S): Record<string, string>;
  /** Arguments; the program is before them. */
  arguments(serverDirectory: ServerDirectory): string[];
  /** Directories of others that it uses. */
  readable(spec: S): string[];
  /** Makes the running one take what was written. @throws whatever */
  reload(serverDirectory: ServerDirectory, spec: S, sessions: 'stay' | 'end'): Promise<void>;
  /** A line of its log for users; null: nothing for them. */
  logLine(text: string): string | null;
}

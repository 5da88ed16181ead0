// What the platform keeps about a server: in a file beside its data on a host, with its StatefulSet in a cluster.
import { readNote, writeNote, type ServerDirectory } from '../hosted_server/server_directory';

/** Values are JSON. */
export interface ServerNotes {
  /** Null where there is none. */
  readNote<T>(name: string): Promise<T | null>;
  writeNote(name: string, note: unknown): Promise<void>;
}

/** Of a server of this host. */
export function notesOf(serverDirectory: ServerDirectory): ServerNotes {
  return {
    readNote: (name) => readNote(serverDirectory, name),
    writeNote: (name, note) => writeNote(serverDirectory, name, note),
  };
}

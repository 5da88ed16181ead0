// Names of writers say which process of the API their client is connected to, so that the right of one that was killed
// is known to be void before it ends by itself.
import { randomUUID } from 'node:crypto';
import { readlinkSync } from 'node:fs';
import { bootId, isRunningSince, parseProcessNote } from '../../core/process/process_note';
import { processOf } from '../../core/process/processes';

/** A name for a client of this process. */
export function mintWriterName(): string {
  return [process.pid, processOf(process.pid)?.start ?? '', bootId(), pidNamespace(), randomUUID()].join(' ');
}

/** Whether the process of the client has ended. False where nobody can tell here: it may be in another container. */
export function isWriterGone(name: string): boolean {
  const note = parseProcessNote(name);
  if (note === null || note.boot === '' || note.boot !== bootId() || note.others[0] !== pidNamespace()) return false;
  return !isRunningSince(note);
}

/** Processes of other namespaces have the same ids. */
function pidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return 'unknown';
  }
}

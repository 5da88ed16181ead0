// Removes directories that programs of tenants may have written, or still write.
import { CommandFailed, run } from './command';
import { unboundedContext } from '../driver';

/**
 * Removes a tree, also one with directories that their owner may not write (Go's module cache), or deeper than a path
 * can be long. Absent is success. By rm(1) and not by node: it goes by descriptors (openat, O_NOFOLLOW), so that a
 * program that puts a link in the place of a directory meanwhile does not lead it elsewhere.
 * @throws CommandFailed
 */
export async function removeTree(tree: string): Promise<void> {
  try {
    await run('rm', ['-rf', '--', tree], unboundedContext());
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    await run('chmod', ['-R', 'u+rwX', '--', tree], unboundedContext()).catch(() => undefined);
    await run('rm', ['-rf', '--', tree], unboundedContext());
  }
}

// The project of a command, for paths that name it.
import type { Row } from '../output/print';
import type { Session } from '../session';

type Me = Row & { project: { id: string } | null };

/** Also that of a key that is bound to one. */
export async function projectIdOf(session: Session): Promise<string | undefined> {
  return (await session.project()) ?? (await session.request<Me>('GET', '/v2/me')).project?.id;
}

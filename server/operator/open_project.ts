// One transaction of the operator in a project, on a platform that is open.
import type { Context } from '../../core/context';
import { mintRequestId } from '../../core/ids';
import { makeContext } from '../platform/context';
import type { Platform } from '../platform/platform';
import { actAsOperator } from './open';

interface InProject {
  project_id: string;
  account_id: string;
  project_name: string;
}

export function inProject(
  platform: Platform,
  { project_id: id, account_id, project_name: name }: InProject,
  run: (ctx: Context) => Promise<void>,
): Promise<void> {
  const ctx = makeContext(platform, {
    ...{ request_id: mintRequestId(), address: 'operator', user_agent: 'operator', project_header: undefined },
  });
  return ctx.transact(async (own) => {
    actAsOperator(own, { id, account_id, name } as never);
    await run(own);
  });
}

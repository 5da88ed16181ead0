// Plans and applies as a test asks for them.
import type { Answer, CallOptions, TestService } from '../service';

export interface Change {
  action: string;
  type: string;
  name: string;
  fields: { path: string; from: string | null; to: string | null }[];
  operation_id: string;
  danger: string | null;
  line: number | null;
  resource_id: string | null;
}

export interface Stacks {
  plan(document: string, options?: CallOptions & { prune?: boolean; environment?: string }): Promise<Answer>;
  apply(document: string, plan: Answer, options?: CallOptions & { confirm?: string[] }): Promise<Answer>;
  /** Plans and applies. Expects that nothing is refused. */
  make(document: string, options?: { prune?: boolean; confirm?: string[]; key?: string }): Promise<Change[]>;
  export(query?: string, options?: CallOptions): Promise<Answer>;
}

/** @param project default: the first one */
export function stacksOf(service: TestService, project = service.project, own: CallOptions = {}): Stacks {
  const path = `/v2/projects/${project}/stack`;
  const stacks: Stacks = {
    plan: (document, { prune, environment, ...options } = {}) =>
      service.call('POST', `${path}/plan`, {
        ...{ ...own, ...options },
        body: { document, ...(prune !== undefined && { prune }), ...(environment !== undefined && { environment }) },
      }),
    apply: (document, { body }, { confirm, ...options } = {}) =>
      service.call('POST', `${path}/apply`, {
        ...{ ...own, ...options },
        body: { document, plan_token: body.plan_token, ...(confirm && { confirm }) },
      }),
    async make(document, { prune = false, confirm, key } = {}) {
      const options = key === undefined ? {} : { key };
      const plan = await stacks.plan(document, { prune, ...options });
      if (plan.body.plan_token === null || plan.status !== 200) throw new Error(plan.text);
      const applied = await stacks.apply(document, plan, { ...options, ...(confirm && { confirm }) });
      if (applied.status !== 202) throw new Error(applied.text);
      return applied.body.changes as Change[];
    },
    export: (query = '', options = {}) => service.call('GET', `${path}${query}`, { ...own, ...options }),
  };
  return stacks;
}

/** `create database main` */
export const briefly = (changes: readonly Change[]): string[] =>
  changes.map(({ action, type, name }) => `${action} ${type} ${name}`);

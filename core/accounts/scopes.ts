// Scopes of personal keys. Project keys and sessions pass every check.

export const scopes = {
  read: { description: 'List and fetch resources.' },
  write: { description: 'Create, update and delete resources.' },
  deploy: { description: 'Trigger, cancel and roll back deployments.' },
  'env:read': { description: 'Read the values of environment variables and the credentials of databases.' },
  'env:write': { description: 'Write the values of environment variables.' },
  'logs:read': { description: 'Read logs of applications, deployments and databases.' },
} as const;

export type Scope = keyof typeof scopes;

/** What an operation demands: a scope, any valid key, or no key at all. */
export type ScopeRule = Scope | 'any' | 'none';

export function isScope(text: string): text is Scope {
  return Object.hasOwn(scopes, text);
}

export function isScopeRule(text: string): text is ScopeRule {
  return text === 'any' || text === 'none' || isScope(text);
}

/** The general rule: a query needs read, a mutation write. A scope that the SDL demands replaces it. */
export function defaultScope(kind: 'query' | 'mutation'): Scope {
  return kind === 'query' ? 'read' : 'write';
}

/** Whether what the scope lets a key read are secrets. */
export function revealsSecrets(scope: ScopeRule): boolean {
  return scope === 'env:read';
}

/** The rate budget that an operation is counted in. */
export function budgetOf(kind: 'query' | 'mutation', scope: ScopeRule): 'read' | 'write' | 'deploy' {
  if (scope === 'deploy') return 'deploy';
  return kind === 'query' ? 'read' : 'write';
}

// Scopes of personal keys. Project keys and sessions have all scopes.

export const scopes = {
  read: { description: 'List and fetch resources.' },
  write: { description: 'Create, update and delete resources.' },
  deploy: { description: 'Trigger, cancel and roll back deployments.' },
  'env:read': { description: 'Read the values of environment variables and the credentials of databases.' },
  'env:write': { description: 'Write the values of environment variables.' },
  'logs:read': { description: 'Read logs of applications, deployments and databases.' },
} as const;

export type Scope = keyof typeof scopes;

/** Requirement of an operation: a scope, any valid key, or no key. */
export type ScopeRule = Scope | 'any' | 'none';

export function isScope(text: string): text is Scope {
  return Object.hasOwn(scopes, text);
}

export function isScopeRule(text: string): text is ScopeRule {
  return text === 'any' || text === 'none' || isScope(text);
}

/** The default: a query requires read, a mutation write. A scope in the SDL replaces it. */
export function defaultScope(kind: 'query' | 'mutation'): Scope {
  return kind === 'query' ? 'read' : 'write';
}

/** Whether the scope grants access to secrets. */
export function revealsSecrets(scope: ScopeRule): boolean {
  return scope === 'env:read';
}

/** The rate limit budget that an operation is charged to. */
export function budgetOf(kind: 'query' | 'mutation', scope: ScopeRule): 'read' | 'write' | 'deploy' {
  if (scope === 'deploy') return 'deploy';
  return kind === 'query' ? 'read' : 'write';
}

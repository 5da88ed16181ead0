// The operations that the server had when this version was built.
import source from '#operations';

export interface Value {
  name: string;
  type: 'string' | 'integer' | 'number' | 'boolean' | 'object' | 'array';
  nullable?: boolean;
  items?: string;
  enum?: string[];
  min?: number;
  max?: number;
  default?: unknown;
  format?: string;
  required?: boolean;
  description?: string;
  example?: string;
}

export interface Operation {
  id: string;
  method: string;
  path: string;
  group: string;
  summary: string;
  description?: string;
  scope: string;
  extension?: boolean;
  path_parameters?: Value[];
  query?: Value[];
  body?: Value[];
  body_required?: boolean;
  project?: boolean;
  idempotent?: boolean;
  wait?: boolean;
  dry_run?: boolean;
  if_match?: boolean;
  stream?: boolean;
  open?: boolean;
}

let known: Operation[] | undefined;

/** In the order of their groups. Parsed when first asked for. */
export function allOperations(): readonly Operation[] {
  return (known ??= (JSON.parse(source) as { operations: Operation[] }).operations);
}

// State machines. A kind defines its states and transitions once; models check transitions with it.

export interface StateMachine<State extends string = string> {
  readonly all: readonly State[];
  readonly initial: readonly State[];
  readonly moves: Readonly<Record<string, readonly State[]>>;
  /** States in which the platform is working; they end by themselves. */
  readonly transitional: readonly State[];
  /** States with a direct transition to `to`. @throws Error for an undefined state */
  predecessors(to: string): State[];
}

/**
 * Defines a state machine. Every state can be left by DELETE, so a settled state may be terminal.
 * @throws Error at definition for an unreachable state, and for a transitional one without a path to a settled state
 */
export function defineStates<const State extends string>(definition: {
  initial: readonly State[];
  moves: { readonly [from in State]?: readonly State[] };
  transitional?: readonly State[];
}): StateMachine<State> {
  const moves = definition.moves as Record<string, readonly State[] | undefined>;
  const transitional = definition.transitional ?? [];
  const reached = reach(definition.initial, (state) => moves[state] ?? []);
  requireReached([...(Object.keys(moves) as State[]), ...transitional], reached);
  requireWaysOut(transitional, moves);
  const all = [...reached];
  return Object.freeze({
    all: Object.freeze(all),
    initial: definition.initial,
    moves: Object.freeze(Object.fromEntries(all.map((state) => [state, moves[state] ?? []]))),
    transitional,
    predecessors(to: string): State[] {
      if (!reached.has(to as State)) throw new Error(`"${to}" is not a state of this machine`);
      return all.filter((from) => moves[from]?.includes(to as State));
    },
  });
}

function reach<State>(start: readonly State[], next: (state: State) => readonly State[]): Set<State> {
  const reached = new Set(start);
  for (const state of reached) for (const to of next(state)) reached.add(to);
  return reached;
}

function requireReached<State>(named: State[], reached: Set<State>): void {
  const lost = named.find((state) => !reached.has(state));
  if (lost !== undefined) throw new Error(`no move leads to the state "${lost}"`);
}

function requireWaysOut<State extends string>(
  transitional: readonly State[],
  moves: Record<string, readonly State[] | undefined>,
): void {
  for (const state of transitional) {
    const reached = reach([state], (from) => (transitional.includes(from) ? (moves[from] ?? []) : []));
    if ([...reached].every((to) => transitional.includes(to)))
      throw new Error(`the transitional state "${state}" has no way out`);
  }
}

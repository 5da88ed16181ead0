import { useEffect } from 'preact/hooks';

const FIRST_MS = 1_500;
/** Some states wait for people, such as for records at a registrar. */
const LAST_MS = 60_000;

/**
 * Asks again while something moves, ever less often: not every change of a state is an entry of the activity.
 * @param states what is moving, as text; a change begins anew
 */
export function useSettling(states: string, reload: () => Promise<void>): void {
  useEffect(() => {
    if (!states) return undefined;
    let pauseMs = FIRST_MS;
    let timer = setTimeout(ask, pauseMs);
    function ask(): void {
      pauseMs = Math.min(pauseMs * 1.5, LAST_MS);
      timer = setTimeout(ask, pauseMs);
      if (!document.hidden) void reload();
    }
    return () => clearTimeout(timer);
  }, [states, reload]);
}

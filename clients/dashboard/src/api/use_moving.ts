import { useEffect } from 'preact/hooks';

const MOVING_MS = 2_000;

/** Asks again while something moves: not every change of a state is an entry of the activity. */
export function useMoving(isMoving: boolean, reload: () => Promise<void>): void {
  useEffect(() => {
    if (!isMoving) return undefined;
    const timer = setInterval(() => void (document.hidden || reload()), MOVING_MS);
    return () => clearInterval(timer);
  }, [isMoving, reload]);
}

// An interruptible wait. A signal that arrives while there is no waiter is remembered.

export interface WakeSignal {
  notify(): void;
  /** Waits for the next signal, at most `ms`. */
  wait(ms: number): Promise<void>;
}

export function openWakeSignal(): WakeSignal {
  let rung = false;
  let wake: (() => void) | null = null;
  return {
    notify() {
      rung = true;
      wake?.();
    },
    async wait(ms) {
      if (!rung) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      rung = false;
      wake = null;
    },
  };
}

// Whether long lines of logs are broken: a choice that stays in the browser, for all logs.
import { useState } from 'preact/hooks';

const WRAPS = 'wrap-log-lines';
/** Where a line has no room, such as on a phone, it is broken unless the person has chosen otherwise. */
export const IS_NARROW = matchMedia('(max-width: 40rem)').matches;

export interface Wrapping {
  wraps: boolean;
  wrap(yes: boolean): void;
}

export function useWrapping(): Wrapping {
  const chosen = localStorage.getItem(WRAPS);
  const [wraps, setWraps] = useState(chosen ? chosen === 'yes' : IS_NARROW);
  const wrap = (yes: boolean): void => {
    setWraps(yes);
    localStorage.setItem(WRAPS, yes ? 'yes' : 'no');
  };
  return { wraps, wrap };
}

export function WrapSwitch({ wraps, wrap }: Wrapping) {
  return (
    <button type="button" class="quiet small" aria-pressed={wraps} onClick={() => wrap(!wraps)}>
      Wrap lines
    </button>
  );
}

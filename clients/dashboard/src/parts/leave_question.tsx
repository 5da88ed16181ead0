import { Dialog } from './dialog';
import { leaveNow, leavingWaits } from './unsaved';

/** Asks before what is not saved is lost. */
export function LeaveQuestion() {
  if (!leavingWaits.value) return null;
  const stay = (): void => void (leavingWaits.value = null);
  return (
    <Dialog title="Leave without saving?" onClose={stay}>
      <p>What you have changed on this page is not saved, and is lost when you leave.</p>
      <footer class="actions">
        <button type="button" class="quiet" onClick={leaveNow}>
          Leave
        </button>
        <button type="button" autoFocus onClick={stay}>
          Stay
        </button>
      </footer>
    </Dialog>
  );
}

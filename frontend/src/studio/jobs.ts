/** The list of jobs: progress, last lines, and buttons to cancel, resume and open. */
import { make, makeButton } from "../dom";
import { formatNumber } from "../format";
import { type Job, post, sentence } from "./api";
import { Alert } from "./controls";

const STATES: Record<Job["state"], string> = { waiting: "waiting", running: "running", done: "done", failed: "failed", cancelled: "cancelled" };

/** "3 s", "3 min 10 s", "2 h 1 min". */
export function formatDuration(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** "12 of 48 examples, 3.1/s, 12 s left". */
export function describeProgress(job: Job): string {
  const { progress } = job;
  if (!progress) return job.state === "running" ? "Starting" : "";
  const { done, total, unit, rate } = progress;
  const parts = [`${done.toLocaleString("en-US")} of ${total.toLocaleString("en-US")} ${unit}`];
  if (rate) parts.push(`${formatNumber(rate, 2)}/s`);
  if (rate && done < total && job.state === "running") parts.push(`${formatDuration((total - done) / rate)} left`);
  return parts.join(", ");
}

/** One job; its elements stay, so that the focus does, too. */
class JobItem {
  readonly element = make("li", "hs-job");
  private readonly title = make("h3", "hs-panel-title");
  private readonly state = make("span", "hs-state");
  private readonly bar = make("progress", "hs-progress", { "aria-label": "Progress" });
  private readonly facts = make("p", "hs-small");
  private readonly message = make("p", "hs-message");
  private readonly lines = make("pre", "hs-lines", { tabindex: 0, "aria-label": "Last lines" });
  private readonly more = make("details", "hs-more", {}, make("summary", "", {}, "Last lines"), this.lines);
  private readonly cancel = makeButton("Cancel", () => void this.act("cancel"));
  private readonly resume = makeButton("Resume", () => void this.act("resume"));
  private readonly open = makeButton("Open", () => this.job.result && this.list.onOpen(this.job.result, this.job.title));
  private readonly alert = new Alert();

  constructor(public job: Job, private readonly list: JobList) {
    const buttons = make("div", "hs-do", {}, this.open, this.cancel, this.resume);
    this.element.append(make("div", "hs-jobtop", {}, this.title, this.state), this.bar, this.facts, this.message, buttons, this.alert.element, this.more);
    this.update(job);
  }

  private async act(what: "cancel" | "resume"): Promise<void> {
    try {
      this.alert.show("");
      this.list.take(await post<Job>(`/api/jobs/${encodeURIComponent(this.job.id)}/${what}`));
    } catch (error) {
      this.alert.show(sentence(error));
    }
  }

  update(job: Job): void {
    this.job = job;
    const { state, progress } = job;
    const running = state === "running";
    this.element.dataset["state"] = state;
    this.title.textContent = job.title;
    this.state.textContent = STATES[state];
    this.bar.hidden = !running;
    if (progress?.total) [this.bar.max, this.bar.value] = [progress.total, progress.done];
    else this.bar.removeAttribute("value");
    setText(this.facts, describeProgress(job));
    setText(this.message, job.message);
    this.cancel.hidden = !(running || state === "waiting");
    this.resume.hidden = !job.resumable;
    this.open.hidden = !job.result;
    this.more.hidden = !job.lines.length;
    this.lines.textContent = job.lines.join("\n");
  }
}

function setText(element: HTMLElement, text: string): void {
  element.hidden = !text;
  if (element.textContent !== text) element.textContent = text;
}

/** All jobs, the newest first. */
export class JobList {
  readonly element = make("section", "hs-jobs", { "aria-label": "Jobs", hidden: true });
  onOpen: (result: string, title: string) => void = () => {};
  /** A job ended, or another one came. */
  onChange: () => void = () => {};
  private readonly items = new Map<string, JobItem>();
  private readonly list = make("ul");
  private readonly live = make("p", "hs-hidden", { role: "status" });

  constructor() {
    this.element.append(make("h2", "hs-label", {}, "Jobs"), this.list, this.live);
  }

  /** How many run or wait. */
  get active(): number {
    return [...this.items.values()].filter(({ job }) => job.state === "running" || job.state === "waiting").length;
  }

  /** Take over what changed; `whole` says that there are no other jobs. */
  merge(jobs: readonly Job[], whole: boolean): void {
    const known = new Set(jobs.map((job) => job.id));
    for (const [id, item] of this.items) {
      if (!whole || known.has(id)) continue;
      item.element.remove();
      this.items.delete(id);
    }
    for (const job of jobs) this.take(job);
    this.element.hidden = !this.items.size;
  }

  /** Take over one job. */
  take(job: Job): void {
    const item = this.items.get(job.id);
    const before = item?.job.state;
    if (item) item.update(job);
    else this.add(job);
    this.element.hidden = false;
    if (before === job.state) return;
    if (before) this.live.textContent = `${job.title}: ${STATES[job.state]}. ${job.message}`;
    this.onChange();
  }

  private add(job: Job): void {
    const item = new JobItem(job, this);
    this.items.set(job.id, item);
    this.list.prepend(item.element);
  }
}

// The live panel: shows some of the values at /metrics, once per second while the page is visible.
// It also notices that the server was away or has restarted.
import { fetchMetrics } from './api.js';

const kPeriodMs = 1000;
const kTimeoutMs = 5000;
const kNumSamples = 60;
const kWidth = 120;
const kHeight = 28;
const kGroups = 'vllm:spec_decode_num_drafts_total'; // groups of drafts: one sequence's in one step
const kDrafts = 'vllm:spec_decode_num_draft_tokens_total';
const kAccepted = 'vllm:spec_decode_num_accepted_tokens_total';

// Returns a map of name to value, summed over labels. The sums of histogram buckets have no
// meaning.
export function parseMetrics(text) {
  const values = new Map();
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const name = line.slice(0, line.search(/[{ ]/));
    const value = Number(line.slice(line.lastIndexOf(' ') + 1));
    values.set(name, (values.get(name) ?? 0) + value);
  }
  return values;
}

const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;
const count = (value) => Math.round(value).toLocaleString('en');
const kCompact = new Intl.NumberFormat('en', { notation: 'compact' }); // 412, 1.2K, 35K

// The gauges, computed from the metrics now and at the previous reading. `top` is the upper end of
// the drawing; without it, the highest sample, at least 1. A gauge that `needs` a metric is hidden
// without it.
const kGauges = [
  { id: 'running', value: (now) => now.get('vllm:num_requests_running'), show: count },
  { id: 'waiting', value: (now) => now.get('vllm:num_requests_waiting'), show: count },
  { id: 'kv', value: (now) => now.get('vllm:kv_cache_usage_perc'), show: percent, top: 1 },
  { id: 'rate', value: tokensPerSecond, show: count },
  { id: 'hits', value: hitShare, show: percent, top: 1 },
  { id: 'length', value: acceptedLength, show: (length) => length.toFixed(2), needs: kGroups },
  { id: 'drafts', value: acceptedShare, show: acceptedCount, top: 1, needs: kGroups },
];

// Returns NaN at the first reading, since a rate needs two.
function tokensPerSecond(now, before, seconds) {
  const name = 'vllm:generation_tokens_total';
  return before ? Math.max(0, now.get(name) - before.get(name)) / seconds : NaN;
}

// Returns the share of prompt tokens that were found in the prefix cache since the server started.
function hitShare(now) {
  const queries = now.get('vllm:prefix_cache_queries_total');
  return queries > 0 ? now.get('vllm:prefix_cache_hits_total') / queries : 0;
}

// Returns the tokens per step of the sequences that had drafts, since the previous reading, or since
// the server started if there was none. NaN if no drafts were verified.
function acceptedLength(now, before) {
  const since = (name) => now.get(name) - (before?.get(name) ?? 0);
  return since(kGroups) > 0 ? 1 + since(kAccepted) / since(kGroups) : NaN;
}

// Returns the share of drafts that were accepted since the server started.
function acceptedShare(now) {
  return now.get(kAccepted) / now.get(kDrafts);
}

function acceptedCount(share, now) {
  return `${kCompact.format(now.get(kAccepted))} of ${kCompact.format(now.get(kDrafts))}`;
}

// Returns the points "x,y x,y …" of a line through the samples, with the newest at the right edge.
export function sparklinePoints(samples, top) {
  const highest = top ?? Math.max(1, ...samples);
  const step = kWidth / (kNumSamples - 1);
  const first = kNumSamples - samples.length;
  return samples.map((sample, i) => {
    const y = kHeight - 1 - (kHeight - 2) * Math.min(1, sample / highest);
    return `${((first + i) * step).toFixed(1)},${y.toFixed(1)}`;
  }).join(' ');
}

// Returns the function that draws the gauge's samples.
function drawing(gauge) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', `0 0 ${kWidth} ${kHeight}`);
  svg.setAttribute('preserveAspectRatio', 'none');
  svg.setAttribute('aria-hidden', 'true');
  const area = svg.appendChild(document.createElementNS(svg.namespaceURI, 'polygon'));
  const line = svg.appendChild(document.createElementNS(svg.namespaceURI, 'polyline'));
  document.querySelector(`[data-gauge="${gauge.id}"] .spark`).append(svg);
  return (points) => {
    const left = points.slice(0, points.indexOf(','));
    area.setAttribute('points', `${left},${kHeight} ${points} ${kWidth},${kHeight}`);
    line.setAttribute('points', points);
  };
}

// Calls onReturn() when the server answers again, or has restarted. Returns a function that
// restarts the panel, which must be called after the key has changed.
export function startPanel(onReturn) {
  const state = document.getElementById('panel-state');
  const gauges = kGauges.map((gauge) => ({
    ...gauge,
    samples: [],
    draw: drawing(gauge),
    row: document.querySelector(`[data-gauge="${gauge.id}"]`),
    output: document.querySelector(`[data-gauge="${gauge.id}"] .value`),
  }));
  const synthetic = document.getElementById('panel-synthetic');
  let before = null;
  let beforeMs = 0;
  let timer = 0;
  let inFlight = null;
  let wasAway = false;
  let startTime; // of the server's process

  function noticeReturn(now) {
    const time = now.get('process_start_time_seconds');
    const hasRestarted = startTime !== undefined && time !== startTime;
    if (wasAway || hasRestarted) onReturn();
    wasAway = false;
    startTime = time;
  }

  function show(now, nowMs) {
    synthetic.hidden = !now.get('quire_spec_decode_synthetic_acceptance');
    for (const gauge of gauges) {
      gauge.row.hidden = gauge.needs !== undefined && !now.has(gauge.needs);
      const value = gauge.value(now, before, (nowMs - beforeMs) / 1000);
      if (!Number.isFinite(value)) continue;
      gauge.samples.push(value);
      if (gauge.samples.length > kNumSamples) gauge.samples.shift();
      gauge.output.textContent = gauge.show(value, now);
      gauge.draw(sparklinePoints(gauge.samples, gauge.top));
    }
    before = now;
    beforeMs = nowMs;
  }

  async function poll() {
    const abort = new AbortController();
    inFlight = abort;
    const deadline = setTimeout(() => abort.abort('late'), kTimeoutMs);
    try {
      const text = await fetchMetrics(abort.signal);
      if (inFlight !== abort) return;
      const now = parseMetrics(text);
      show(now, performance.now());
      state.textContent = 'live';
      noticeReturn(now);
    } catch (error) {
      if (inFlight !== abort) return;
      before = null;
      if (error.status === 401) {
        state.textContent = 'needs a key';
        return; // until the key changes
      }
      state.textContent = 'no contact';
      wasAway = true;
    } finally {
      clearTimeout(deadline);
    }
    timer = setTimeout(poll, kPeriodMs);
  }

  // A hidden page sends no requests. Once it is shown again, rates start anew, without the time in
  // between.
  function follow() {
    clearTimeout(timer);
    inFlight?.abort();
    inFlight = null;
    before = null;
    if (document.visibilityState === 'visible') poll();
    else wasAway = true; // the server may restart meanwhile
  }
  document.addEventListener('visibilitychange', follow);
  follow();
  return follow;
}

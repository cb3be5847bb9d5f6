// Command driver hosts sarama and kafka-go clients and speaks JSON lines; see tests/interop/driver.py.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"sync"
	"time"

	"github.com/IBM/sarama"
	kafka "github.com/segmentio/kafka-go"
)

const (
	patience = 30 * time.Second
	beat     = 300 * time.Millisecond
)

type request struct {
	ID         int64             `json:"id"`
	Op         string            `json:"op"`
	Client     string            `json:"client"`
	ClientID   string            `json:"client_id"`
	Name       string            `json:"name"`
	Bootstrap  string            `json:"bootstrap"`
	Group      string            `json:"group"`
	Topic      string            `json:"topic"`
	Topics     []string          `json:"topics"`
	Instance   string            `json:"instance"`
	Instances  []string          `json:"instances"`
	Assignor   string            `json:"assignor"`
	SessionMs  int               `json:"session_ms"`
	Partitions json.RawMessage   `json:"partitions"`
	Offsets    []position        `json:"offsets"`
	Rows       []value           `json:"rows"`
	Config     map[string]string `json:"config"`
}

// position is [topic, partition, offset] in JSON, the offset being optional.
type position struct {
	topic     string
	partition int32
	offset    int64
}

func (p *position) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&p.topic, &p.partition, &p.offset})
}

func (p position) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{p.topic, p.partition, p.offset})
}

// value is [partition, text] in JSON.
type value struct {
	partition int32
	text      string
}

func (v *value) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&v.partition, &v.text})
}

// count is what a request's partitions are when a topic is made.
func (r *request) count() (count int) {
	_ = json.Unmarshal(r.Partitions, &count)
	return count
}

// places is what they are where offsets are asked for.
func (r *request) places() (places []position, err error) {
	err = json.Unmarshal(r.Partitions, &places)
	return places, err
}

// client is what each library does for the driver.
type client interface {
	start(r *request) (member, error)
	admin(ctx context.Context, r *request) (any, error)
	produce(ctx context.Context, r *request) (any, error)
}

type member interface {
	commit(ctx context.Context, offsets []position) error
	log() *log
	close() error
}

// log is what a member has seen.
type log struct {
	mu         sync.Mutex
	held       [][2]any
	generation any
	id         string
	read       [][4]any
	rebalances int
	fatal      string
}

func (l *log) assigned(held [][2]any, generation int32, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held, l.generation, l.id = held, generation, id
	l.rebalances++
}

func (l *log) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fatal = code(err)
}

func (l *log) add(topic string, partition int32, offset int64, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.read = append(l.read, [4]any{topic, partition, offset, text})
}

func (l *log) state() any {
	l.mu.Lock()
	defer l.mu.Unlock()
	state := map[string]any{
		"assignment": append([][2]any{}, l.held...), "generation": l.generation, "member_id": l.id,
		"rebalances": l.rebalances, "read": len(l.read), "fatal": nil,
	}
	if l.fatal != "" {
		state["fatal"] = l.fatal
	}
	return state
}

func (l *log) records() any {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([][4]any{}, l.read...)
}

var (
	clients = map[string]client{"sarama": saramaClient{}, "kafka-go": kafkaGo{}}
	members sync.Map
)

func run(ctx context.Context, r *request) (any, error) {
	library, known := clients[r.Client]
	switch {
	case r.Op == "start" && known:
		made, err := library.start(r)
		if err == nil {
			members.Store(r.Name, owned{made, library, r.Bootstrap, r.Group})
		}
		return nil, err
	case r.Op == "produce" && known:
		return library.produce(ctx, r)
	case known:
		return library.admin(ctx, r)
	}
	found, known := members.Load(r.Name)
	if !known {
		return nil, fmt.Errorf("no member %s", r.Name)
	}
	return found.(owned).run(ctx, r)
}

// owned is a member with what it takes to ask for its group.
type owned struct {
	member
	library          client
	bootstrap, group string
}

func (o owned) run(ctx context.Context, r *request) (any, error) {
	switch r.Op {
	case "state":
		return o.log().state(), nil
	case "records":
		return o.log().records(), nil
	case "commit":
		return nil, o.commit(ctx, r.Offsets)
	case "committed":
		return o.library.admin(ctx, &request{
			Op: "admin.committed", Bootstrap: o.bootstrap, Group: o.group, Partitions: r.Partitions,
		})
	case "close":
		members.Delete(r.Name)
		return nil, o.close()
	}
	return nil, fmt.Errorf("unknown operation %s", r.Op)
}

// code is the error's number, by which both libraries agree with Kafka, else its text.
func code(err error) string {
	var ofSarama sarama.KError
	var ofKafkaGo kafka.Error
	switch {
	case errors.As(err, &ofSarama):
		return fmt.Sprintf("CODE_%d", ofSarama)
	case errors.As(err, &ofKafkaGo):
		return fmt.Sprintf("CODE_%d", ofKafkaGo)
	}
	return err.Error()
}

func sorted(rows []map[string]any) []map[string]any {
	sort.Slice(rows, func(i, j int) bool { return fmt.Sprint(rows[i]) < fmt.Sprint(rows[j]) })
	return rows
}

func main() {
	var out sync.Mutex
	writer := json.NewEncoder(os.Stdout)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		r := &request{}
		if err := json.Unmarshal(lines.Bytes(), r); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			answer := map[string]any{"id": r.ID}
			result, err := run(ctx, r)
			if err == nil {
				answer["result"] = result
			} else {
				answer["error"], answer["message"] = code(err), err.Error()
			}
			out.Lock()
			defer out.Unlock()
			_ = writer.Encode(answer)
		}()
	}
}

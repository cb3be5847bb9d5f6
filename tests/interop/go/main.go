// Command driver hosts franz-go, sarama and kafka-go clients and speaks JSON lines: {"id", "op", ...} in,
// {"id", "result"} or {"id", "error", "message"} out. See tests/interop/driver.py.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
	kafka "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
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
	Pattern    string            `json:"pattern"`
	Instance   string            `json:"instance"`
	Instances  []string          `json:"instances"`
	Protocol   string            `json:"protocol"`
	Assignor   string            `json:"assignor"`
	SessionMs  int               `json:"session_ms"`
	Partitions json.RawMessage   `json:"partitions"`
	Offsets    []position        `json:"offsets"`
	Rows       []value           `json:"rows"`
	Leave      bool              `json:"leave"`
	Config     map[string]string `json:"config"`

	TransactionalID string `json:"transactional_id"`
	To              string `json:"to"`
	Count           int    `json:"count"`
	Commit          bool   `json:"commit"`
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

// member is a consumer in a group; closed with tell, it returns what came of leaving the group.
type member interface {
	state() any
	records() any
	commit(ctx context.Context, offsets []position) error
	committed(ctx context.Context, r *request) (any, error)
	close(tell bool) error
}

var (
	clients  = map[string]client{"franz-go": franz{}, "sarama": saramaClient{}, "kafka-go": kafkaGo{}}
	members  sync.Map
	sessions sync.Map
)

func run(ctx context.Context, r *request) (any, error) {
	library, known := clients[r.Client]
	switch {
	case strings.HasPrefix(r.Op, "session."):
		return transact(ctx, r)
	case r.Op == "start" && known:
		made, err := library.start(r)
		if err == nil {
			members.Store(r.Name, made)
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
	m := found.(member)
	switch r.Op {
	case "state":
		return m.state(), nil
	case "records":
		return m.records(), nil
	case "heard":
		if listener, ok := m.(interface{ heardSoFar() any }); ok {
			return listener.heardSoFar(), nil
		}
		return nil, fmt.Errorf("%s has no rebalance listener", r.Client)
	case "commit":
		return nil, m.commit(ctx, r.Offsets)
	case "committed":
		return m.committed(ctx, r)
	case "close":
		members.Delete(r.Name)
		return nil, m.close(r.Leave)
	}
	return nil, fmt.Errorf("unknown operation %s", r.Op)
}

// code is the name of Kafka's error code or its number, as the library has it, else the error's text.
func code(err error) string {
	var ofFranz *kerr.Error
	var ofSarama sarama.KError
	var ofKafkaGo kafka.Error
	switch {
	case errors.As(err, &ofFranz):
		return ofFranz.Message
	case errors.As(err, &ofSarama):
		return fmt.Sprintf("CODE_%d", ofSarama)
	case errors.As(err, &ofKafkaGo):
		return fmt.Sprintf("CODE_%d", ofKafkaGo)
	}
	return err.Error()
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
